"""P4, rows: a block for each row and a thread for each of its elements, as a plane of threads.

Where the threads of a block do nothing together, that a row is one block, as wide as the row or
with elements a block apart, is of no consequence: rows and columns become axes of the launch with
a guard, and steps that look for one item a thread see them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Expr, Literal, Member, Name, builtin, every
from optiml_magic.kernels.parallel import comparisons
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.firsts import stores_first
from optiml_magic.kernels.primitives.grids import (
    form_of,
    most_threads,
    said,
    said_alike,
    sizes_of,
)
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.places import axis_of, bare, index, own_text_only, tops
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.unstrided import check_rounds, going_on, kept_before
from optiml_magic.kernels.tree import Block, If, Loop, Statement, expressions
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Expression, parse_expression

_THREAD = "threadIdx.x"
_UNSIGNED = "unsigned int"
_WARP, _THREADS, _NARROWEST = 32, 256, 8


def _of_one_index(kernel: Kernel) -> bool:
    """Whether all places that a thread asks for, and tests, are made of its one index."""
    symbols, width = kernel.reading.symbols, kernel.block[0]
    own = {_THREAD, "blockIdx.x"}
    accesses = kernel.reading.accesses
    forms = [a.index for a in accesses if a.index is not None]
    forms += [c.form for a in accesses for one in a.guard for c in comparisons(one)]
    asking = [form for form in forms if own & symbols.inside(form)]
    placed = [index(form, "x", width or 0) for form in asking]
    return (
        width is not None
        and bool(asking)
        and all(
            form is not None and not own & symbols.inside(form.without(["@x"])) for form in placed
        )
    )


def _index(axis: str) -> Expr:
    block, width, thread = (_place(name, axis) for name in ("blockIdx", "blockDim", "threadIdx"))
    return Binary(None, "+", Binary(None, "*", block, width), thread)


def _place(name: str, axis: str) -> Expr:
    return Member(None, Name(None, name), axis)


_COLUMN, _ROW = (_index(axis) for axis in "xy")
_WORDS = tuple(f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}" for axis in "xy")


@dataclass(frozen=True)
class _Rows:
    """``count`` is how many elements a row has, and ``body`` what is done for each of them.

    ``first`` is whether the first of them does more, so that there must be one. The sizes are to be
    as ``asked``.
    """

    count: Polynomial
    body: Block
    first: bool = False
    asked: Sequence[RequireDirective] = ()


@primitive
def rowed(kernel: Kernel) -> Kernel:
    """A block a row, whose threads work alone, as threads along x and y below their bounds."""
    launch, effects = kernel.launch, Effects(kernel)
    if len(launch.block) > 1 or launch.shared is not None:
        raise NotLegal("its launch does not have a block of one axis for each row")
    if {*launch.block[0].names} & {tune.name for tune in kernel.program.tunes}:
        raise NotLegal("the width of its blocks is tuned, so a block is not a row")
    effects.straightforward()
    without_warps(kernel)
    own_text_only(kernel)
    every_place_read(kernel)
    asked = {builtin(e) for e in expressions(kernel.function.body)}
    if not {_THREAD, "blockIdx.x"} <= asked or "gridDim.x" in asked:
        raise NotLegal("its threads do not ask for their block and for their place in it")
    if kernel.reading.calls & set(TOLD):
        raise NotLegal("it prints, which tells how many threads there are")
    whole = [axis_of(kernel, e) == "x" for e in _places(kernel)]
    if all(whole) or (any(whole) and kernel.block[0] is not None) or _of_one_index(kernel):
        raise NotLegal("a thread asks for its index, which is more than its row and column")
    if most_threads(kernel) < _THREADS:
        raise NotLegal("its launch bounds say how many threads a block has")
    rows = _stepped(kernel, effects, kernel.function.body.body)
    return _plane(kernel, effects, rows or _Rows(_width(kernel, effects), kernel.function.body))


def _places(kernel: Kernel) -> list[Expr]:
    """Where a kernel asks for its thread along x, by the widest expressions that do."""
    found: list[Expr] = []
    stack = [*tops(kernel.function.body)]
    while stack:
        expr = stack.pop()
        if axis_of(kernel, expr) == "x" or builtin(expr).endswith(".x"):
            found.append(expr)
        else:
            stack += expr.parts
    return found


def _stepped(kernel: Kernel, effects: Effects, own: Sequence[Statement]) -> _Rows | None:
    """The elements of a loop that goes from a thread's place in its block in steps of it.

    What the first thread stores behind the loop may as well stand before it.
    """
    first = [s for s in own if stores_first(kernel, effects, s, _THREAD)]
    at = max((n for n, s in enumerate(own) if isinstance(s, Loop)), default=-1)
    loop, before = own[at] if own else None, (*own[:at], *own[at + 1 :])
    if not isinstance(loop, Loop) or any(s not in first for s in own[at + 1 :]):
        return None
    axis, width = kernel.axes().get(loop), kernel.block[0]
    if axis is None or axis.start != Polynomial.symbol(_THREAD):
        return None
    step = Polynomial.constant(width) if width else Polynomial.symbol("blockDim.x")
    if axis.step != step or loop.kind != "for" or loop.test is None:
        return None
    if not axis.exact or axis.scaled or axis.stop is None:
        raise NotLegal("how many rounds its loop makes is not known", loop.line)
    inside = {*expressions(loop.body), *every(loop.test)}
    places = {e for e in _places(kernel) if builtin(e) != "blockIdx.x"}
    if places & inside:
        raise NotLegal("a round asks for its thread", loop.line)
    asked = check_rounds(kernel, effects, axis, loop)
    kept = kept_before(kernel, before, loop, places, computed=True)
    swaps: dict[Node, Node] = {s: replace(s, kind="return", span=None) for s in going_on(loop.body)}
    body = edited(loop.body, swaps) if swaps else loop.body
    head = () if loop.before is None else (replace(loop.before, lead=None),)
    item = (*kept, *head, If(None, loop.line, loop.test, body))
    _check_said(kernel, effects, axis.stop)
    return _Rows(axis.stop, replace(kernel.function.body, body=item), bool(first), asked)


def _width(kernel: Kernel, effects: Effects) -> Polynomial:
    """How many threads a block has, in words that mean the same in the kernel."""
    count = form_of(kernel.launch.block[0].tree, kernel.reading.symbols)
    if kernel.block[0] is not None:
        count = Polynomial.constant(kernel.block[0])
    if count is None:
        raise NotLegal("how many threads its blocks have is not read")
    _check_said(kernel, effects, count)
    return count


def _check_said(kernel: Kernel, effects: Effects, count: Polynomial) -> None:
    given = {p.name for p in kernel.function.parameters if not p.type.depth}
    sizes = sizes_of(kernel, count)
    alike = sizes <= given | kernel.program.values.keys()
    if not alike or not said_alike(kernel, sizes) or sizes & effects.moved:
        raise NotLegal("how long a row is its launch and the kernel do not say alike")


def _plane(kernel: Kernel, effects: Effects, rows: _Rows) -> Kernel:
    wide, count = value(kernel, rows.count) or _WARP, said(kernel, rows.count)
    across = _WARP
    while across > _NARROWEST and across >= 2 * wide:
        across //= 2
    grid = kernel.launch.grid
    height = height_of(kernel, effects, grid[0])
    few = 1 if height is None else kernel.facts.grid[0] if kernel.facts is not None else _THREADS
    while wide > across and few <= _THREADS // across // 2:  # else threads have no row
        across *= 2
    shape = (across, _THREADS // across if height is not None else 1)
    row = _ROW if height is not None else _place("blockIdx", "y")
    width = text(f"({_UNSIGNED}){_operand(count)}")
    others: dict[str, Node] = {
        "blockDim.x": width,
        _THREAD: _COLUMN,
        "blockIdx.x": row,
        **_others(kernel, effects),
        "threadIdx.y": Literal(None, "0u", 0),
        "blockDim.y": Literal(None, "1u", 1),
    }
    swaps: dict[Node, Node] = {}
    for expr in expressions(rows.body):
        if _starts(expr):
            above = f"({_WORDS[1]})" if height is not None else "blockIdx.y"
            swaps[expr] = text(f"{above} * {_operand(count)}")
        elif builtin(expr) in others:
            swaps[expr] = others[builtin(expr)]
    bounds = [f"{_WORDS[0]} >= {_operand(count)}"]
    bounds += [f"{_WORDS[1]} >= {height}"] if height is not None else []
    body = edited(rows.body, swaps)
    assert isinstance(body, Block)
    guard = lines(f"if ({' || '.join(bounds)}) return;")
    kept = tuple(replace(s, lead=None) for s in body.body)
    blocks = (
        f"cdiv({count}, {shape[0]})",
        f"cdiv({height}, {shape[1]})" if height is not None else str(grid[0]),
        *([" * ".join(f"({g})" for g in grid[1:])] if len(grid) > 2 else map(str, grid[1:])),
    )
    launch = replace(
        kernel.launch,
        grid=tuple(parse_expression(b) for b in blocks),
        block=tuple(parse_expression(str(s)) for s in shape if s > 1),
    )
    # A part of a size may be nothing, and a grid has a block at least.
    least = rows.first or sizes_of(kernel, rows.count) != rows.count.symbols
    some = [RequireDirective(parse_expression(f"{count} >= 1"))] * least
    made = kernel.rewritten(
        replace(body, body=(guard, *kept)),
        launch=launch,
        directives=[*with_limits(kernel, launch, lambda _: []), *some, *rows.asked],
    )
    return replace(made, facts=_facts(kernel, wide, shape))


def _others(kernel: Kernel, effects: Effects) -> dict[str, Node]:
    """What blocks along y and z become: those along z, of which they are digits where both are."""
    grid = kernel.launch.grid
    if len(grid) < 3:
        return {"blockIdx.y": _place("blockIdx", "z"), "gridDim.y": _place("gridDim", "z")}
    count = height_of(kernel, effects, grid[1])
    if count is None:
        raise NotLegal(
            "how many blocks there are along y its launch and the kernel do not say alike"
        )
    wide = f"({_UNSIGNED}){count}"
    return {
        "blockIdx.y": text(f"blockIdx.z % {wide}"),
        "blockIdx.z": text(f"blockIdx.z / {wide}"),
        "gridDim.y": text(wide),
        "gridDim.z": text(f"gridDim.z / {wide}"),
    }


def _starts(expr: Expr) -> bool:
    """Whether this is ``blockIdx.x * blockDim.x``, the index of a block's first thread."""
    if not isinstance(expr, Binary) or expr.op != "*":
        return False
    return {builtin(bare(expr.left)), builtin(bare(expr.right))} == {"blockIdx.x", "blockDim.x"}


def _operand(words: str) -> str:
    return words if words.isidentifier() or words.isdigit() else f"({words})"


def height_of(kernel: Kernel, effects: Effects, blocks: Expression) -> str | None:
    """How many rows there are, where the kernel has words for it."""
    form = form_of(blocks.tree, kernel.reading.symbols)
    try:
        _check_said(kernel, effects, form or Polynomial.symbol(""))
    except NotLegal:
        return None
    return str(blocks) if blocks.name is not None else f"({blocks})"


def _facts(kernel: Kernel, wide: int, shape: tuple[int, int]) -> LaunchFacts | None:
    facts = kernel.facts
    if facts is None:
        return None
    blocks = facts.grid[1] * facts.grid[2]
    grid = (-(-wide // shape[0]), -(-facts.grid[0] // shape[1]), blocks)
    return replace(facts, grid=grid, block=(*shape, 1))
