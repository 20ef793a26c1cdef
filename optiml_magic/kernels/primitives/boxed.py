"""P4, boxes: a block for each small matrix and a thread for each of its elements, as a box.

``block(32, 32)`` of which a thread asks for its row and column in the block, and the block for one
matrix of many, is the same as threads along x and y below these bounds and blocks along z, where
the threads of a block do nothing together. Steps that look for one output a thread then see them.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Literal, builtin
from optiml_magic.kernels.primitives.axes import every_place_read, without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import most_threads
from optiml_magic.kernels.primitives.limits import MOST_BLOCKS, with_limits
from optiml_magic.kernels.primitives.places import axis_of, own_text_only
from optiml_magic.kernels.primitives.rowed import height_of
from optiml_magic.kernels.tree import expressions
from optiml_magic.source.expressions import parse_expression

_UNSIGNED = "unsigned int"
_WORDS = tuple(f"blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}" for axis in "xy")
_WARP, _THREADS, _NARROWEST = 32, 256, 8
_ASKED = frozenset({"threadIdx.x", "threadIdx.y"})


@primitive
def boxed(kernel: Kernel) -> Kernel:
    """A block a matrix, whose threads work alone, as threads along x and y below their bounds."""
    launch, effects = kernel.launch, Effects(kernel)
    wide, high, deep = kernel.block
    if len(launch.block) < 2 or wide is None or high is None or deep != 1 or launch.shared:
        raise NotLegal("its launch does not have a block of two axes for each matrix")
    if wide * high < _WARP:
        raise NotLegal("its blocks have few threads, whose loops lanes may share")
    effects.straightforward()
    without_warps(kernel)
    own_text_only(kernel)
    every_place_read(kernel)
    asked = {builtin(e) for e in expressions(kernel.function.body)}
    if not asked >= _ASKED or "blockIdx.z" in asked or any(e.startswith("gridDim") for e in asked):
        raise NotLegal("its threads do not ask for their place in the block alone")
    if kernel.reading.calls & set(TOLD):
        raise NotLegal("it prints, which tells how many threads there are")
    if any(axis_of(kernel, e) in ("x", "y") for e in expressions(kernel.function.body)):
        raise NotLegal("a thread asks for its index, which is more than its place in the block")
    if most_threads(kernel) < _THREADS:
        raise NotLegal("its launch bounds say how many threads a block has")
    return _box(kernel, effects, wide, high)


def _box(kernel: Kernel, effects: Effects, wide: int, high: int) -> Kernel:
    grid, facts = kernel.launch.grid, kernel.facts
    many = [height_of(kernel, effects, blocks) for blocks in grid]
    if None in many or len(grid) > 2:
        raise NotLegal("how many blocks there are its launch and the kernel do not say alike")
    if facts is not None and prod(facts.grid) > MOST_BLOCKS:
        raise NotLegal("there are more blocks than a grid may have along z")
    across = _WARP
    while across > _NARROWEST and across >= 2 * wide:
        across //= 2
    down = min(_THREADS // across, high)
    swaps = _swaps(kernel, wide, high, many[0] if len(many) > 1 else None)
    body = edited(kernel.function.body, swaps)
    guard = lines(f"if ({_WORDS[0]} >= {wide} || {_WORDS[1]} >= {high}) return;")
    extents = f"cdiv({wide}, {across})", f"cdiv({high}, {down})", " * ".join(map(str, many))
    launch = replace(
        kernel.launch,
        grid=tuple(map(parse_expression, extents)),
        block=(parse_expression(str(across)), parse_expression(str(down))),
    )
    kept = tuple(replace(s, lead=None) for s in body.body)
    made = kernel.rewritten(
        replace(body, body=(guard, *kept)),
        launch=launch, directives=with_limits(kernel, launch, lambda _: []),
    )  # fmt: skip
    if facts is None:
        return made
    shape = (-(-wide // across), -(-high // down), prod(facts.grid))
    return replace(made, facts=replace(facts, grid=shape, block=(across, down, 1)))


def _swaps(kernel: Kernel, wide: int, high: int, row: str | None) -> dict[Node, Node]:
    """A place in a block as an index; a block's as its number, or digits where ``row`` are one."""
    words: dict[str, Node] = {
        "threadIdx.x": text(_WORDS[0]),
        "threadIdx.y": text(_WORDS[1]),
        "threadIdx.z": Literal(None, "0u", 0),
        "blockDim.x": text(f"({_UNSIGNED}){wide}"),
        "blockDim.y": text(f"({_UNSIGNED}){high}"),
        "blockDim.z": Literal(None, "1u", 1),
        "blockIdx.x": text("blockIdx.z"),
        "blockIdx.y": Literal(None, "0u", 0),
    }
    if row is not None:
        words["blockIdx.x"] = text(f"blockIdx.z % ({_UNSIGNED}){row}")
        words["blockIdx.y"] = text(f"blockIdx.z / ({_UNSIGNED}){row}")
    inside = expressions(kernel.function.body)
    return {e: words[name] for e in inside if (name := builtin(e)) in words}
