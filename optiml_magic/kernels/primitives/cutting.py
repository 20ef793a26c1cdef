"""P4, blocks cut anew: the same threads in blocks of another extent.

It is for kernels whose threads know where they stand in the grid, but not in their block. Where
guards keep the threads beyond the last element from doing anything, a block may have any extent;
elsewhere one that divides the old, so that there are exactly as many threads as before.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import (
    Binary,
    Call,
    Cast,
    Expr,
    Literal,
    Member,
    Name,
    builtin,
    every,
)
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.primitives.axes import GROUPS, LOOSE
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, once, primitive
from optiml_magic.kernels.primitives.cooperating import cooperation
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import needed, said_alike
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.places import (
    axis_of,
    bare,
    code,
    own_text_only,
    returned,
    tops,
)
from optiml_magic.kernels.primitives.warps import Cooperation
from optiml_magic.source import expressions as sizes
from optiml_magic.source.directives import LaunchDirective, TuneDirective
from optiml_magic.source.expressions import Expression, Number, parse_expression
from optiml_magic.source.folding import folded

TOLD = ("printf", "assert", "__assert_fail", "__trap")  # a thread more would be heard of
_MOST_THREADS = 1024
_WARP = 32
_WHOLE = ("int", "unsigned int", "unsigned", "long", "size_t", "long long", "int64_t")


@dataclass(frozen=True)
class Freedom:
    """Which extents a block may have along an axis: any, where ``count`` threads do something.

    Otherwise one that divides the present one. It needs a ``guard`` where it has none as yet.
    Where lanes work together, blocks before and after are of whole ``warps``. Where the whole block
    does, in ``together``, its width is a power of two, and there are as many blocks as before.
    """

    count: Expression | None
    guard: bool = False
    warps: bool = False
    together: Cooperation | None = None

    def allows(self, extent: int, old: int) -> bool:
        """Whether ``extent`` is one of them, beside the present ``old`` one."""
        if self.together is not None:
            return not extent & (extent - 1) and _WARP <= extent <= self.together.most
        parts = self.warps and (extent % _WARP or old % _WARP)
        return not parts and (self.count is not None or old % extent == 0)


@dataclass
class Uses:
    """Where a kernel asks for its thread along one axis.

    ``whole`` for its index in the grid, ``strides`` for the threads of the grid; ``parts`` tell
    more, of the block.
    """

    whole: list[Expr] = field(default_factory=list)
    strides: list[Expr] = field(default_factory=list)
    parts: list[Expr] = field(default_factory=list)


@primitive
def cut(kernel: Kernel, extents: Mapping[str, int]) -> Kernel:
    """The kernel in blocks with these extents along some axes."""
    for axis, extent in extents.items():
        if not freedom(kernel, axis).allows(extent, _extent(kernel, axis)):
            raise NotLegal(f"{extent} threads along {axis} are not certain to do the same")
    old = {axis: _extent(kernel, axis) for axis in extents}
    if kernel.function.launch_bounds and math.prod(extents.values()) > math.prod(old.values()):
        raise NotLegal("its launch bounds say how many threads a block has")
    new = {axis: parse_expression(str(extent)) for axis, extent in extents.items()}
    return _cut(kernel, new, ())


@primitive
def tuned(kernel: Kernel, values: Mapping[str, Sequence[int]]) -> Kernel:
    """The kernel in blocks whose extents along some axes are tuned names with these values."""
    if kernel.function.launch_bounds:
        raise NotLegal("its launch bounds say how many threads a block has")
    names = block_names(kernel, values)
    others = [
        f"({size})"
        for axis, size, count in zip("xyz", kernel.launch.block, kernel.block, strict=False)
        if axis not in values and count != 1
    ]
    threads = [*names.values(), *others]
    fits = parse_expression(f"{' * '.join(threads)} <= {_MOST_THREADS}")
    tunes = [
        TuneDirective(
            name, tuple(sorted({*values[axis], _extent(kernel, axis)})), _extent(kernel, axis),
            fits if len(threads) > 1 and name == [*names.values()][-1] else None,
        )
        for axis, name in names.items()
    ]  # fmt: skip
    for axis, extents in values.items():
        free, old = freedom(kernel, axis), _extent(kernel, axis)
        if not all(free.allows(extent, old) for extent in extents):
            raise NotLegal(f"no other number of threads along {axis} is certain to do the same")
    return _cut(kernel, {a: parse_expression(n) for a, n in names.items()}, tunes)


def block_names(kernel: Kernel, axes: Iterable[str]) -> dict[str, str]:
    """What the extents of a block are called once they are tuned, by axis."""
    single = len(kernel.launch.block) == 1
    return {axis: kernel.fresh("BLOCK" if single else f"BLOCK_{axis.upper()}") for axis in axes}


@once
def freedom(kernel: Kernel, axis: str) -> Freedom:
    """Which extents a block may have along an axis. Raises NotLegal where it can have no other."""
    at, launch = "xyz".index(axis), kernel.launch
    shared = any(access.space == "shared" for access in kernel.reading.accesses)
    together = bool(kernel.reading.barriers) or shared
    check_unfixed(kernel, alone=not together)
    if at >= len(launch.block) and kernel.block[at] != 1:
        raise NotLegal(f"its block has no extent along {axis}")
    if at < len(launch.block) and not isinstance(launch.block[at].tree, Number):
        raise NotLegal(f"the extent of its block along {axis} is not a number")
    if together:
        return Freedom(None, together=cooperation(kernel))
    found = uses(kernel, axis)
    if found.parts:
        line = kernel.unit.line(*(found.parts[0].span or kernel.function.span))
        raise NotLegal(f"a thread asks where in its block it stands along {axis}", line)
    warps = any(LANES.fullmatch(name) or name in LOOSE for name in kernel.reading.calls)
    if warps and kernel.block[1:] != (1, 1):
        raise NotLegal("its lanes work together, and a warp has several rows")
    if found.strides:
        return Freedom(None, warps=warps)
    guarded = needed(kernel, axis, loads=True)
    if guarded is not None:
        return Freedom(guarded, warps=warps)
    return Freedom(_single(kernel, axis), guard=True, warps=warps)


def _single(kernel: Kernel, axis: str) -> Expression | None:
    """The blocks of one thread, where the kernel itself can compare with how many these are."""
    at, launch = "xyz".index(axis), kernel.launch
    if _extent(kernel, axis) != 1 or at >= len(launch.grid):
        return None
    size, given = folded(launch.grid[at]), kernel.function.parameters
    whole = {p.name for p in given if p.type.base in _WHOLE and not p.type.depth}
    known = size.names <= whole | kernel.program.values.keys() and not size.arrays
    known = known and said_alike(kernel, size.names)
    several = bool(size.names) or (isinstance(size.tree, Number) and size.tree.value > 1)
    return size if known and several and not {"(", "?"} & {*str(size)} else None


@once
def uses(kernel: Kernel, axis: str) -> Uses:
    """Where the kernel's own text asks for its thread along one axis."""
    found = Uses()
    for top in tops(kernel.function.body):
        _gather(kernel, top, axis, found)
    return found


def _gather(kernel: Kernel, expr: Expr, axis: str, found: Uses) -> None:
    if axis_of(kernel, expr) == axis:
        found.whole.append(expr)
    elif _is_stride(kernel, expr, axis):
        found.strides.append(expr)
    elif builtin(expr) == f"blockIdx.{axis}" and _extent(kernel, axis) == 1:
        found.whole.append(expr)
    elif builtin(expr).endswith(f".{axis}"):
        found.parts.append(expr)
    else:
        for part in expr.parts:
            _gather(kernel, part, axis, found)


def _is_stride(kernel: Kernel, expr: Expr, axis: str) -> bool:
    """Whether this is ``blockDim * gridDim``, the threads of the grid."""
    if builtin(expr) == f"gridDim.{axis}" and _extent(kernel, axis) == 1:
        return True
    if not isinstance(expr, Binary) or expr.op != "*":
        return False
    sides = bare(expr.left), bare(expr.right)
    for grid, block in (sides, sides[::-1]):
        if builtin(grid) == f"gridDim.{axis}":
            width = isinstance(block, Literal) and block.value == _extent(kernel, axis)
            return width or builtin(block) == f"blockDim.{axis}"
    return False


def _extent(kernel: Kernel, axis: str) -> int:
    found = kernel.block["xyz".index(axis)]
    if found is None:
        raise NotLegal(f"the extent of its block along {axis} is not a number")
    return found


def check_unfixed(kernel: Kernel, *, alone: bool, dynamic: bool = False) -> None:
    """Raise NotLegal where more than its guards depends on how many threads a block has.

    Threads that work ``alone`` share no memory, and do not wait for each other. It may have
    ``dynamic`` shared memory where that stays as large as it is.
    """
    Effects(kernel).straightforward(lanes=True, alone=alone)
    own_text_only(kernel)
    if kernel.launch.shared is not None and not dynamic:
        raise NotLegal("it has dynamic shared memory")
    for word in ("__block_size__", "__cluster_dims__"):
        if word in code(kernel.unit, kernel.function.span):
            raise NotLegal(f"`{word}` says how many threads a block has")
    for name in sorted(kernel.reading.calls & (GROUPS - LOOSE)):
        raise NotLegal(f"`{name}` asks for the threads of a block")
    for name in TOLD:
        if name in kernel.reading.calls:
            raise NotLegal(f"`{name}` tells how many threads there are")


def _cut(
    kernel: Kernel, extents: Mapping[str, Expression], tunes: Sequence[TuneDirective]
) -> Kernel:
    swaps: dict[Node, Node] = {}
    for axis in extents:
        found = uses(kernel, axis)
        swaps |= {e: _whole(kernel, e, axis) for e in found.whole if not _general(kernel, e, axis)}
        stride = Binary(None, "*", _place("blockDim", axis), _place("gridDim", axis))
        for expr in found.strides:
            if not _general(kernel, expr, axis):
                swaps[expr] = _typed(kernel, expr, stride)
    free = {axis: freedom(kernel, axis) for axis in extents}
    for axis, f in free.items():
        swaps |= _together(f.together, axis, extents[axis]) if f.together is not None else {}
    body = edited(kernel.function.body, swaps)
    guards = [lines(f"if ({_index(axis)} >= {f.count}) return;")
              for axis, f in free.items() if f.guard and f.count]  # fmt: skip
    launch = relaunched(kernel, extents)
    return kernel.rewritten(
        replace(body, body=(*guards, *body.body)) if guards else body,
        launch=launch,
        directives=[*tunes, *limits(kernel, launch, tunes)],
        tidy=False,
    )


def _together(found: Cooperation, axis: str, extent: Expression) -> dict[Node, Node]:
    """The numbers that stand for the width of a block."""
    width = _place("blockDim", axis)
    swaps: dict[Node, Node] = dict.fromkeys(found.widths, width)
    swaps |= dict.fromkeys(found.halves, Binary(None, "/", width, Literal(None, "2", 2)))
    swaps |= dict.fromkeys(found.warps, Binary(None, "/", width, Literal(None, str(_WARP), _WARP)))
    swaps |= dict.fromkeys(found.leads, text(f"{extent} / {_WARP}"))
    return swaps | dict.fromkeys(found.extents, text(str(extent)))


def relaunched(kernel: Kernel, extents: Mapping[str, Expression]) -> LaunchDirective:
    """The launch of as many threads, at least, in blocks with these extents."""
    launch, one = kernel.launch, parse_expression("1")
    rank = max(len(launch.block), len(launch.grid), *("xyz".index(a) + 1 for a in extents))
    grid, block = ([*s, *[one] * (rank - len(s))] for s in (launch.grid, launch.block))
    for axis, extent in extents.items():
        at, old = "xyz".index(axis), _extent(kernel, axis)
        free = freedom(kernel, axis)
        block[at] = extent
        if free.together is not None:
            continue
        if free.count is not None:
            grid[at] = _printed(sizes.Call("cdiv", (free.count.tree, extent.tree)))
            continue
        by: sizes.Node = sizes.Binary("/", Number(old), extent.tree)
        if isinstance(extent.tree, Number):
            by = Number(old // extent.tree.value)
        alone = grid[at].tree == Number(1)
        grid[at] = _printed(by if alone else sizes.Binary("*", grid[at].tree, by))
    return replace(launch, grid=tuple(grid), block=tuple(block))


def _printed(tree: sizes.Node) -> Expression:
    return Expression(tree, str(Expression(tree, "")))


def _general(kernel: Kernel, expr: Expr, axis: str) -> bool:
    """Whether a place is spelled by the extent of the block, whatever that is."""
    return any(builtin(e) == f"blockDim.{axis}" for e in _spelled(kernel, expr))


def _spelled(kernel: Kernel, expr: Expr) -> Iterator[Expr]:
    for part in every(expr):
        inner = returned(kernel.unit, part) if isinstance(part, Call) else None
        yield from every(inner) if inner is not None else (part,)


def _whole(kernel: Kernel, expr: Expr, axis: str) -> Expr:
    kind = kernel.reading.types.get(expr)
    block = _place("blockIdx", axis)
    wide = kind is not None and kind.size == 8
    first: Expr = Cast(None, kind.name, block) if wide and kind is not None else block
    start = Binary(None, "*", first, _place("blockDim", axis))
    index = Binary(None, "+", start, _place("threadIdx", axis))
    return index if wide else _typed(kernel, expr, index)


def _typed(kernel: Kernel, expr: Expr, new: Expr) -> Expr:
    kind = kernel.reading.types.get(expr)
    unsigned = kind is not None and kind.size == 4 and not kind.signed
    return new if kind is None or unsigned or not kind.integral else Cast(None, kind.name, new)


def _index(axis: str) -> str:
    return f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"


def _place(variable: str, axis: str) -> Expr:
    return Member(None, Name(None, variable), axis)
