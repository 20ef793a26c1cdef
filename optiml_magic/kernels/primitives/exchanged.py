"""P4, exchange: rows of threads and a digit of their block's number change places.

``blockIdx.z`` counts pairs or more, ``z / f`` and ``z % f``, and every thread has a row beside.
What one digit of ``z`` told becomes the row of a thread, and ``z`` counts the others with its row
instead. Or an axis of the threads becomes that of the blocks along z, and the other way round.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import builtin
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.primitives.axes import exchanged as axes
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    in_turn,
    primitive,
    where_legal,
)
from optiml_magic.kernels.primitives.cutting import cut, uses
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.factors import Factored, operand
from optiml_magic.kernels.primitives.grids import form_of, needed, needed_form
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.places import Place, placed
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.tree import expressions
from optiml_magic.source.expressions import parse_expression


@primitive
def exchange_rows(kernel: Kernel, at: int = 0) -> Kernel:
    """A digit of ``blockIdx.z``, the lowest one with 0, becomes the row of a thread."""
    kernel = where_legal(pruned, kernel.settled())
    effects = Effects(kernel)
    effects.straightforward()
    width, grid = kernel.block[1], kernel.launch.grid
    if width is None or len(grid) < 3 or kernel.block[2] != 1:
        raise NotLegal("its blocks are not numbered along three axes")
    digits = _Digits(kernel, effects, at)
    rows = needed_form(kernel, "y")
    if rows is None:
        raise NotLegal("its launch and its guards do not bound the outputs alike")
    high = digits.factored.spelled(rows)
    row, line, rest = map(kernel.fresh, ("row_of_block", "line", "plane"))
    swaps: dict[Node, Node] = placed(kernel, {"y": Place(f"(unsigned int){line}", width)})
    swaps |= digits.swaps(row, rest)
    body = edited(kernel.function.body, swaps)
    first = lines(
        f"const int {row} = blockIdx.y * blockDim.y + threadIdx.y;\n"
        f"const int {line} = (int)blockIdx.z % {high}, {rest} = (int)blockIdx.z / {high};\n"
        f"if ({row} >= {digits.extent}) return;"
    )
    across = parse_expression(f"cdiv({digits.extent}, {kernel.launch.block[1]})")
    launch = replace(
        kernel.launch, grid=(grid[0], across, parse_expression(f"{digits.others} * {high}"))
    )
    made = kernel.rewritten(
        replace(body, body=(first, *body.body)),
        launch=launch, directives=with_limits(kernel, launch, lambda _: []),
    )  # fmt: skip
    return with_grid(made)


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


class _Digits:
    """The digits of ``blockIdx.z``, of which one is to be a row of threads."""

    def __init__(self, kernel: Kernel, effects: Effects, at: int) -> None:
        if any(builtin(e) == "gridDim.z" for e in expressions(kernel.function.body)):
            raise NotLegal("its blocks are counted")
        self.kernel = kernel
        found = self.factored = Factored(kernel, effects, uses(kernel, "z").whole)
        whole = form_of(kernel.launch.grid[2].tree, kernel.reading.symbols)
        if whole is None:
            raise NotLegal("how many outputs there are is not said by sizes alone")
        found.close(whole)
        if at + 1 >= len(found.chain):
            raise NotLegal("the number of a block has fewer digits")
        self.at, self.extent = at, found.size(at, at + 1)
        others = (found.size(0, at), found.size(at + 1, len(found.chain) - 1))
        self.others = " * ".join(words for words in others if words != "1") or "1"

    def swaps(self, row: str, rest: str) -> dict[Node, Node]:
        """What stands for each part of the number: ``rest`` holds the other digits."""
        found, at = self.factored, self.at
        last = len(found.chain) - 1
        below = found.size(0, at)
        held = [
            (operand(f"{rest} % {below}"), 0, at),
            (row, at, at + 1),
            (operand(f"{rest} / {below}") if at else rest, at + 1, last),
        ]
        swaps = dict[Node, Node]()
        for expr, part in found.cuts.items():
            low, high = found.ends(part)
            kind = self.kernel.reading.types.get(expr)
            if kind is None:
                raise NotLegal("the type of a number is not known")
            words = found.value(held, low, last if high is None else high)
            swaps[expr] = text(f"({kind.name}){operand(words)}")
        return swaps
