"""P4, spread: the rounds of a loop that do not meet become blocks along a free axis of the launch.

What stands around the loop every block does for itself, so it stores nothing.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import builtin
from optiml_magic.kernels.extents import expression
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Block, Leave, Loop, Statement, expressions, walk
from optiml_magic.source.expressions import parse_expression


@primitive
def spread_rounds(kernel: Kernel, at: int) -> Kernel:
    """The loop with this number becomes an axis of the grid, a block a round."""
    kernel = kernel.settled()
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    effects.straightforward()
    own_text_only(kernel)
    axis = _counted(kernel, loop, effects)
    if shareable(kernel, loop, effects):
        raise NotLegal("its rounds add up", loop.line)
    _alone(kernel, loop, effects)
    free = _free(kernel)
    names = [p.name for p in kernel.function.parameters if p.name not in effects.moved]
    assert axis.stop is not None
    assert axis.variable is not None
    extent = expression(axis.stop, kernel.reading.symbols, names)
    if extent is None:
        raise NotLegal("how many rounds there are is not said by sizes alone", loop.line)
    counter = f"const {axis.variable.type.base} {axis.variable.name} = blockIdx.{'xyz'[free]};"
    inside: Statement = edited(loop.body, _leaving(loop)) if _leaving(loop) else loop.body
    parts = inside.body if isinstance(inside, Block) else (inside,)
    body = edited(kernel.function.body, {loop: Block(None, 0, (lines(counter), *parts))})
    one = parse_expression("1")
    grid = [*kernel.launch.grid, one, one][:3]
    grid[free] = extent
    launch = replace(kernel.launch, grid=tuple(grid[: max(free + 1, len(kernel.launch.grid))]))
    directives = with_limits(kernel, launch, lambda _: [])
    made = kernel.rewritten(body, launch=launch, directives=directives)
    count = rounds(kernel, axis)
    if kernel.facts is None or count is None:
        return made
    sizes = [*kernel.facts.grid]
    sizes[free] = count
    return replace(made, facts=replace(kernel.facts, grid=(sizes[0], sizes[1], sizes[2])))


def _counted(kernel: Kernel, loop: Loop, effects: Effects) -> Axis:
    axis = kernel.axes().get(loop)
    if axis is None or not axis.exact or not is_simple(axis, effects) or axis.stop is None:
        raise NotLegal("the loop does not count from 0 in its head", loop.line)
    outer = (o for o in loops_in(kernel.function.body) if o is not loop)
    if any(loop in set(loops_in(o.body)) for o in outer):
        raise NotLegal("the loop is inside another", loop.line)
    return axis


def _alone(kernel: Kernel, loop: Loop, effects: Effects) -> None:
    """Raise NotLegal where something around the loop stores, or meets what the loop stores."""
    inside = effects.inside(loop)
    stored = [a.array for a in kernel.reading.accesses if a.mode != "load"]
    for access in kernel.reading.accesses:
        if access.own in inside or access.space != "global":
            continue
        if access.mode != "load" or any(effects.same(access.array, name) for name in stored):
            raise NotLegal("what is around the loop meets what it stores", access.line)


def _leaving(loop: Loop) -> dict[Node, Node]:
    """The ends of a round, which are those of the kernel then."""
    inner = {s for other in loops_in(loop.body) for s in walk(other.body)}
    return {
        s: replace(s, kind="return", span=None) for s in walk(loop.body)
        if isinstance(s, Leave) and s.kind == "continue" and s not in inner
    }  # fmt: skip


def _free(kernel: Kernel) -> int:
    """The first axis behind x along which there is nothing yet."""
    asked = {builtin(e) for e in expressions(kernel.function.body)}
    for at, axis in ((1, "y"), (2, "z")):
        grid = kernel.launch.grid
        alone = at >= len(grid) or str(grid[at]) == "1"
        named = {f"{what}.{axis}" for what in ("threadIdx", "blockIdx", "blockDim", "gridDim")}
        if alone and kernel.block[at] == 1 and not asked & named:
            return at
    raise NotLegal("no axis of its launch is free")
