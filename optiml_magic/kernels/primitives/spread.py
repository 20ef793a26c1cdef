"""P4, spread: the rounds of a loop that do not meet become blocks along a free axis of the launch.

What stands around the loop every block does for itself, but for what stores: that the blocks of
the first round do. A block may make several neighbouring rounds, so that this is done less often.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Binary, Name, builtin
from optiml_magic.kernels.formulas import expression
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_simple, loops_in
from optiml_magic.kernels.primitives.limits import with_limits
from optiml_magic.kernels.primitives.meetings import never_meet
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Block, Declare, Leave, Loop, Statement, expressions, walk
from optiml_magic.kernels.types import INT, named
from optiml_magic.source.directives import RequireDirective, TuneDirective
from optiml_magic.source.expressions import parse_expression

_ONE = Polynomial.constant(1)


@primitive
def spread_rounds(kernel: Kernel, at: int, each: Sequence[int] = ()) -> Kernel:
    """The loop with this number becomes an axis of the grid, a block a round.

    Or a block for as many rounds as a tuned name says, one of ``each`` and at first the first.
    """
    kernel = kernel.settled()
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    effects.straightforward()
    own_text_only(kernel)
    axis = _counted(kernel, loop, effects)
    if shareable(kernel, loop, effects):
        raise NotLegal("its rounds add up", loop.line)
    once = alone(kernel, loop, effects)
    for access in chain.from_iterable(once.values()):
        _certain(kernel, axis, access)
    free = free_axis(kernel)
    names = [p.name for p in kernel.function.parameters if p.name not in effects.moved]
    assert axis.stop is not None
    assert axis.variable is not None
    extent = expression(axis.stop, kernel.reading.symbols, names)
    if extent is None:
        raise NotLegal("how many rounds there are is not said by sizes alone", loop.line)
    ((_, factor), *more) = axis.stop.terms or (((), 0),)
    plain = all(kernel.reading.symbols[name].kind == "scalar" for name in axis.stop.symbols)
    block = f"blockIdx.{'xyz'[free]}"
    tunes = [TuneDirective(kernel.fresh("ROUNDS"), tuple(sorted(each)), each[0])] if each else []
    if tunes:
        made_of = _several(kernel, axis, plain, str(extent), block, tunes[0].name)
        extent = parse_expression(f"cdiv({extent}, {tunes[0].name})")
    else:
        made_of = _one(loop, f"const {axis.variable.type.base} {axis.variable.name} = {block};")
    swaps: dict[Node, Node] = {loop: made_of, **by_first(kernel, once, free)}
    body = edited(kernel.function.body, swaps)
    one = parse_expression("1")
    grid = [*kernel.launch.grid, one, one][:3]
    grid[free] = extent
    launch = replace(kernel.launch, grid=tuple(grid[: max(free + 1, len(kernel.launch.grid))]))
    directives = with_limits(kernel, launch, lambda _: tunes)
    if more or factor < 1 or not plain:  # no launch has no blocks
        directives.append(RequireDirective(parse_expression(f"{extent} >= 1")))
    made = kernel.rewritten(body, launch=launch, directives=directives)
    count = rounds(kernel, axis)
    if kernel.facts is None or count is None:
        return made
    sizes = [*kernel.facts.grid]
    sizes[free] = -(-count // (each[0] if each else 1))
    return replace(made, facts=replace(kernel.facts, grid=(sizes[0], sizes[1], sizes[2])))


def _one(loop: Loop, counter: str) -> Block:
    """What a round of a loop does, of the one that a block makes."""
    inside: Statement = edited(loop.body, _leaving(loop)) if _leaving(loop) else loop.body
    parts = inside.body if isinstance(inside, Block) else (inside,)
    return Block(None, 0, (lines(counter), *parts))


def _several(kernel: Kernel, axis: Axis, plain: bool, extent: str, block: str, each: str) -> Block:
    """The loop over the rounds of a block; what is left for the last one is less."""
    loop, variable = axis.node, axis.variable
    kind = named(variable.type.base, kernel.unit.aliases) if variable is not None else None
    if not isinstance(loop.before, Declare) or kind != INT or not plain:
        raise NotLegal("rounds of several kinds of numbers are not put together", loop.line)
    (counter,) = loop.before.variables
    end = kernel.fresh(f"{counter.name}_end")
    last = f"min((unsigned int)({extent}), ({block} + 1) * {each})"  # no int beyond the last round
    swaps: dict[Node, Node] = {}
    if counter.value is None or loop.test is None:
        raise NotLegal("the loop does not count from 0 in its head", loop.line)
    swaps[counter.value] = text(f"({block} * {each})")
    swaps[loop.test] = Binary(None, "<", Name(None, counter.name, counter), text(end))
    return Block(None, 0, (lines(f"const int {end} = {last};"), edited(loop, swaps)))


def _counted(kernel: Kernel, loop: Loop, effects: Effects) -> Axis:
    axis = kernel.axes().get(loop)
    if axis is None or not axis.exact or not is_simple(axis, effects) or axis.stop is None:
        raise NotLegal("the loop does not count from 0 in its head", loop.line)
    outer = (o for o in loops_in(kernel.function.body) if o is not loop)
    if any(loop in set(loops_in(o.body)) for o in outer):
        raise NotLegal("the loop is inside another", loop.line)
    return axis


def _certain(kernel: Kernel, axis: Axis, access: Access) -> None:
    """Raise NotLegal where the loop around which this stores may have no first round."""
    left = (axis.stop or _ONE) - _ONE
    if not Ranges(access.guard, kernel.reading.symbols).nonnegative(left):
        raise NotLegal("the loop around which it stores may have no round", access.line)


def alone(kernel: Kernel, loop: Loop, effects: Effects) -> dict[Statement, list[Access]]:
    """The statements around a loop that store, which meet nothing that the loop stores.

    Raises NotLegal where what is around it does meet that, or cannot be done by one block.
    """
    found = dict[Statement, list[Access]]()
    inside = effects.inside(loop)
    within = [a for a in kernel.reading.accesses if a.own in inside]
    around = [
        a for a in kernel.reading.accesses if a.own not in inside and a.space == "global"
    ]  # fmt: skip
    for access in around:
        load = access.mode == "load"
        met = [a for a in within if effects.same(access.array, a.array)
               and not (load and a.mode == "load")]  # fmt: skip
        if load and not met:
            continue
        if access.mode != "store" or not all(never_meet(kernel, access, a) for a in met):
            raise NotLegal("what is around the loop meets what it stores", access.line)
        found.setdefault(_outermost(kernel, loop, access, effects), []).append(access)
    leaves = any(isinstance(s, Leave) for s in walk(loop.body))
    for statement in found:
        own = effects.accesses(statement)
        others = [a.array for a in around if a.mode == "load" and a not in own]
        stored = [a.array for a in own if a.mode != "load"]
        if leaves or any(effects.same(one, array) for one in stored for array in others):
            raise NotLegal("what is around the loop stores what is loaded", statement.line)
    return found


def by_first(kernel: Kernel, once: Iterable[Statement], free: int) -> dict[Node, Node]:
    """Statements of which the first block along an axis alone makes each."""
    test = f"if (blockIdx.{'xyz'[free]} == 0)"
    return {s: lines(f"{test} {{\n{kernel.show(s)}\n}}") for s in once}


def _outermost(kernel: Kernel, loop: Loop, access: Access, effects: Effects) -> Statement:
    """The greatest statement with a store and without the loop, which does nothing else."""
    for statement in walk(kernel.function.body):
        whole = set(walk(statement))
        if access.own in effects.inside(statement) and loop not in whole:
            leaves = any(isinstance(s, Leave) for s in whole)
            more = effects.changed(statement) or effects.kept(statement)
            if leaves or more or isinstance(statement, Declare):
                break
            return statement
    raise NotLegal("what is around the loop stores and does more", access.line)


def _leaving(loop: Loop) -> dict[Node, Node]:
    """The ends of a round, which are those of the kernel then."""
    inner = {s for other in loops_in(loop.body) for s in walk(other.body)}
    return {
        s: replace(s, kind="return", span=None) for s in walk(loop.body)
        if isinstance(s, Leave) and s.kind == "continue" and s not in inner
    }  # fmt: skip


def free_axis(kernel: Kernel) -> int:
    """The first axis along which there is nothing yet, x last."""
    asked = {builtin(e) for e in expressions(kernel.function.body)}
    for at, axis in ((1, "y"), (2, "z"), (0, "x")):
        grid = kernel.launch.grid
        alone = at >= len(grid) or str(grid[at]) == "1"
        named = {f"{what}.{axis}" for what in ("threadIdx", "blockIdx", "blockDim", "gridDim")}
        if alone and kernel.block[at] == 1 and not asked & named:
            return at
    raise NotLegal("no axis of its launch is free")
