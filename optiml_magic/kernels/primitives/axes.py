"""P4, axes exchanged: what threads did along one axis of block and grid, they do along another.

The threads of a block stay those of a block under other names, so shared memory and barriers mean
what they did. What asks which threads are one warp does not, and is refused.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Call, Cast, Expr, Member, Name, builtin, every
from optiml_magic.kernels.functions import LANES
from optiml_magic.kernels.groups import ASKING, SYNCS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.limits import limits
from optiml_magic.kernels.primitives.places import code, code_but_in_registers, reached, returned
from optiml_magic.kernels.tree import Function, expressions
from optiml_magic.kernels.unit import Unit
from optiml_magic.source.expressions import Expression, parse_expression

LOOSE = frozenset({"coalesced_threads"})  # of one warp, wherever that is in its block
GROUPS = LOOSE | {
    "this_thread_block",
    "this_grid",
    "this_cluster",
    "tiled_partition",
    "labeled_partition",
    "binary_partition",
}
_WARPS = re.compile(r"\b(?:volatile|warpSize|asm|__cluster_dims__|__block_size__|clock(?:64)?)\b")
_PLACES = re.compile(r"\b(?:threadIdx|blockIdx|blockDim|gridDim)\b")
_ONE = parse_expression("1")
BLOCKS, THREADS = ("blockIdx", "gridDim"), ("threadIdx", "blockDim")


@primitive
def exchanged(
    kernel: Kernel, one: str, other: str, places: tuple[str, ...] = BLOCKS + THREADS
) -> Kernel:
    """The kernel with two axes exchanged, in its text and in its launch.

    Of one kind of ``places`` alone: the blocks of a grid, or the threads in each of them.
    """
    exchangeable(kernel, places)
    swaps: dict[Node, Node] = {}
    names = {f"{v}.{a}": f"{v}.{b}" for v in places for a, b in ((one, other), (other, one))}
    for expr in expressions(kernel.function.body):
        _exchange(kernel, expr, names, swaps)
    old = kernel.launch
    launch = replace(
        old,
        grid=_exchanged(old.grid, one, other) if {*BLOCKS} <= {*places} else old.grid,
        block=_exchanged(old.block, one, other) if {*THREADS} <= {*places} else old.block,
    )
    return kernel.rewritten(
        edited(kernel.function.body, swaps),
        launch=launch,
        directives=limits(kernel, launch),
        tidy=False,
    )


def exchangeable(kernel: Kernel, places: tuple[str, ...] = BLOCKS + THREADS) -> None:
    """Raise NotLegal where threads under other names may do something else."""
    without_warps(kernel)
    every_place_read(kernel, places)


def without_warps(kernel: Kernel) -> None:
    """Raise NotLegal where a kernel may ask which of its threads are one warp."""
    reading = kernel.reading
    for name in sorted(reading.calls):
        if LANES.fullmatch(name) or name in GROUPS | ASKING | SYNCS:
            raise NotLegal(f"`{name}` asks which threads are one group")
    for barrier in reading.barriers:
        if barrier.scope != "block":
            raise NotLegal("the threads of a warp wait for each other", barrier.line)
    for leaf in reading.verbatim:
        raise NotLegal(f"{leaf.reason} is not read", leaf.line)
    for word in telling(kernel):
        raise NotLegal(f"`{word}` may tell which threads are one warp")


def telling(kernel: Kernel) -> list[str]:
    """The words by which a kernel, or what it calls, may tell which threads are one warp."""
    unit = kernel.unit
    return [
        word
        for function in (kernel.function, *reached(unit, kernel.function))
        for word in _WARPS.findall(code_but_in_registers(unit, function.span))
    ]


def every_place_read(kernel: Kernel, places: tuple[str, ...] = BLOCKS + THREADS) -> None:
    """Raise NotLegal where a kernel asks for its thread in a way that is not read.

    Or for these ``places`` alone, such as the blocks of its grid.
    """
    span = kernel.function.body.span
    assert span is not None
    found = {(e.span, builtin(e)) for e in expressions(kernel.function.body) if builtin(e)}
    read = Counter(name.partition(".")[0] for _, name in found)
    said = Counter(_PLACES.findall(code(kernel.unit, span)))
    if any(read[place] != said[place] for place in places):
        raise NotLegal("not every place where it asks for its thread is read")


def _exchange(kernel: Kernel, expr: Expr, names: dict[str, str], swaps: dict[Node, Node]) -> None:
    renamed = _renamed(expr, names)
    if renamed is not None:
        swaps[expr] = renamed
    if not isinstance(expr, Call):
        return
    unit = kernel.unit
    seeing = [f for f in unit.called(expr.function, len(expr.arguments)) if _sees(unit, f)]
    if not seeing:
        return
    value, kind = returned(unit, expr), seeing[0].result
    plain = not (
        seeing[0].template or kind.depth or kind.reference or any(reached(unit, seeing[0]))
    )
    if value is None or not plain:
        raise NotLegal(f"`{seeing[0].name}` reads where its thread stands", seeing[0].line)
    inner: dict[Node, Node] = {
        e: new for e in every(value) if (new := _renamed(e, names)) is not None
    }
    swaps[expr] = Cast(None, kind.base, edited(value, inner))


def _renamed(expr: Expr, names: dict[str, str]) -> Expr | None:
    variable, _, axis = names.get(builtin(expr), "").partition(".")
    return Member(None, Name(None, variable), axis) if axis else None


def _sees(unit: Unit, function: Function) -> bool:
    """Whether a function, or one that it calls, asks where its thread stands."""
    return any(_PLACES.search(code(unit, f.span)) for f in (function, *reached(unit, function)))


def _exchanged(sizes: tuple[Expression, ...], one: str, other: str) -> tuple[Expression, ...]:
    first, second = ("xyz".index(axis) for axis in (one, other))
    found = [*sizes, *[_ONE] * (max(first, second) + 1 - len(sizes))]
    found[first], found[second] = found[second], found[first]
    return tuple(found)
