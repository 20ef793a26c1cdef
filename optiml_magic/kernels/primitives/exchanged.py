"""P4, exchange: rows of threads and a digit of their block's number change places.

``blockIdx.z`` counts pairs, ``z / f`` and ``z % f``, and every thread has a row beside. What ``z``
told by its rest becomes the row of a thread, and ``z`` counts pairs with its row instead. Or an
axis of the threads becomes that of the blocks along z, and the other way round.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Name, builtin
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import exchanged as axes
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    in_turn,
    primitive,
    where_legal,
)
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, needed, needed_form, said_alike
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.operands import over
from optiml_magic.kernels.primitives.places import Place, bare, placed
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.sizes import value, with_grid
from optiml_magic.kernels.tree import Variable, expressions
from optiml_magic.source.expressions import parse_expression


@primitive
def exchange_rows(kernel: Kernel) -> Kernel:
    """The rest of ``blockIdx.z`` by a size becomes the row of a thread."""
    kernel = where_legal(pruned, kernel.settled())
    effects = Effects(kernel)
    effects.straightforward()
    width, grid = kernel.block[1], kernel.launch.grid
    if width is None or len(grid) < 3 or kernel.block[2] != 1:
        raise NotLegal("its blocks are not numbered along three axes")
    rows, by, digits, others = needed_form(kernel, "y"), *_digits(kernel, effects)
    size, whole = Polynomial.symbol(by), form_of(grid[2].tree)
    pairs = over(whole, size) if whole is not None else None
    if rows is None or pairs is None or not said_alike(kernel, [by]):
        raise NotLegal("its launch and its guards do not bound the outputs alike")
    names = [p.name for p in kernel.function.parameters]
    extents = [
        expression(form, kernel.reading.symbols, names) for form in (size, pairs * rows, rows)
    ]
    if None in extents or by in effects.moved:
        raise NotLegal("how many outputs there are is not said by sizes alone")
    row = kernel.fresh("row_of_block")
    swaps: dict[Node, Node] = placed(kernel, {"y": Place(f"(blockIdx.z % {extents[2]})", width)})
    for part in digits:
        swaps[part] = text(row if part.op == "%" else f"(blockIdx.z / {extents[2]})")
    for place in others:
        kind = kernel.reading.types.get(place)
        if kind is None:
            raise NotLegal("its blocks are not numbered by pairs")
        swaps[place] = text(f"({kind.name})(blockIdx.z / {extents[2]} * {by} + {row})")
    body = edited(kernel.function.body, swaps)
    index = f"const int {row} = blockIdx.y * blockDim.y + threadIdx.y;"
    first = lines(f"{index}\nif ({row} >= {by}) return;")
    across = parse_expression(f"cdiv({extents[0]}, {kernel.launch.block[1]})")
    assert extents[1] is not None
    launch = replace(kernel.launch, grid=(grid[0], across, extents[1]))
    made = kernel.rewritten(
        replace(body, body=(first, *body.body)),
        launch=launch, directives=with_limits(kernel, launch, lambda _: []),
    )  # fmt: skip
    if kernel.facts is None:
        return made
    counts = [value(kernel, form) for form in (size, pairs * rows)]
    dims = (kernel.facts.grid[0], -(-(counts[0] or 1) // width), counts[1] or 1)
    return replace(made, facts=replace(kernel.facts, grid=dims))


@primitive
def as_blocks(kernel: Kernel, axis: str) -> Kernel:
    """What threads have along an axis blocks have along z, and the threads what these had."""
    at, grid = "xyz".index(axis), kernel.launch.grid
    count = grid[at] if len(grid) > at and kernel.block[at] == 1 else needed(kernel, axis)
    if len(grid) < 3 or kernel.block[2] != 1 or count is None:
        raise NotLegal("its blocks are not numbered along three axes")
    alone = () if kernel.block[at] == 1 else (partial(cut, extents={axis: 1}),)
    made = in_turn(kernel, (*alone, partial(axes, one=axis, other="z")))
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    swaps: dict[Node, Node] = placed(made, {"z": Place("blockIdx.z", 1, "0", "blockIdx.z")})
    launch = replace(made.launch, grid=(*made.launch.grid[:2], count))
    body = edited(made.function.body, swaps)
    return with_grid(made.rewritten(body, launch=launch))


@primitive
def folded(kernel: Kernel) -> Kernel:
    """What threads have along x blocks along z count as well, so that x is free."""
    count, effects = needed(kernel, "x"), Effects(kernel)
    grid = kernel.launch.grid
    if len(grid) < 3 or kernel.block[2] != 1 or count is None:
        raise NotLegal("its blocks are not numbered along three axes")
    form = form_of(count.tree, kernel.reading.symbols)
    names = [p.name for p in kernel.function.parameters if p.name not in effects.moved]
    words = expression(form, kernel.reading.symbols, names) if form is not None else None
    made = cut(kernel, {"x": 1})
    if words is None or isinstance(made, Refused):
        raise NotLegal("how many there are along x is not said by sizes alone")
    places = {
        "x": Place(f"(blockIdx.z % ({words}))", 1, "0", f"(blockIdx.z % ({words}))"),
        "z": Place(f"(blockIdx.z / ({words}))", 1, "0", f"(blockIdx.z / ({words}))"),
    }
    swaps = placed(made, places)
    whole = parse_expression(f"({grid[2]}) * ({count})")
    launch = replace(made.launch, grid=(parse_expression("1"), grid[1], whole))
    body = edited(made.function.body, swaps)
    directives = with_limits(kernel, launch, lambda _: [])
    return with_grid(made.rewritten(body, launch=launch, directives=directives))


def _digits(kernel: Kernel, effects: Effects) -> tuple[str, list[Binary], list[Expr]]:
    """The size by which ``blockIdx.z`` is taken apart, where, and where it is asked for whole."""
    holding = {
        v for v in effects.lasting if v.value is not None and _is_block(bare(v.value), set())
    }  # fmt: skip
    whole = [*expressions(kernel.function.body)]
    found = [e for e in whole if isinstance(e, Binary) and e.op in "/%" and
             _is_block(bare(e.left), holding)]  # fmt: skip
    sizes = {e.right.name for e in found if isinstance(e.right, Name)}
    parameters = {p.name for p in kernel.function.parameters if not p.type.depth}
    taken = {bare(e.left) for e in found} | {bare(v.value) for v in holding if v.value is not None}
    others = [e for e in whole if _is_block(e, holding) and e not in taken]
    counted = any(builtin(e) == "gridDim.z" for e in whole)
    if len(sizes) != 1 or not sizes <= parameters or counted:
        raise NotLegal("its blocks are not numbered by pairs")
    if not all(isinstance(e.right, Name) for e in found) or {e.op for e in found} != {"/", "%"}:
        raise NotLegal("its blocks are not numbered by pairs")
    return sizes.pop(), found, others


def _is_block(expr: Expr, holding: set[Variable]) -> bool:
    if isinstance(expr, Name):
        return expr.variable in holding
    return builtin(expr) == "blockIdx.z"
