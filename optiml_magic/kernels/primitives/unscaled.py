"""P13, unscale: what is scaled anew whenever a greater value comes, with the greatest value first.

An online softmax holds the greatest value so far, and sums of exponentials around it:
``d = d * exp(m - n) + exp(x - n)`` with ``n = max(m, x)``. Its rounds wait for each other, and no
lanes can share them. Here a first loop finds the greatest value, a second sums around that; what
both load is kept, where that fits. A round is followed twice, as a greater value comes and as none
does, in sums of products with powers; so it does not matter how it is spelled.
Source: Milakov and Gimelshein, "Online normalizer calculation for softmax" (2018).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.expressions import Assign, Call, Expr, Literal, Step, every
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, names
from optiml_magic.kernels.primitives.online_begun import is_finite
from optiml_magic.kernels.primitives.powers import RAISING, Following, Value, reads
from optiml_magic.kernels.tree import Block, Declare, Leave, Loop, Statement, Variable, walk
from optiml_magic.kernels.types import named

#: Scaled by a power of what is infinite or huge, and not below zero, nothing is no number.
_COLD = "what sums are where a temperature is not above zero"
#: Infinity less itself is not a number: a loop that scales as it goes takes that for one value less
#: where a branch counts the greatest as 1, and for one more where it begins with minus infinity.
_INFINITE = "what sums are where values are infinite"
_NUMBER = re.compile(r"(?=[\d.]*[1-9])(?:\d+\.\d*|\.\d+)f?")  # above zero
_CARRIED = 2  # locals that go from round to round, at least: the greatest value and a sum
_MAX = {"float": "fmaxf", "double": "fmax"}


@dataclass(frozen=True)
class _Online:
    """A loop that finds ``most`` of ``top``, and ``sums`` of what stands beside its powers."""

    loop: Loop
    most: Variable
    top: str
    tested: bool
    even: bool  # whether the greatest value counts by a power of nothing, and not as 1
    raising: str
    by: str  # what multiplies each difference, as a temperature does; empty for nothing
    kept: tuple[Statement, ...]
    sums: tuple[tuple[Variable, Value], ...]


@primitive
def unscaled(kernel: Kernel) -> Kernel:
    """The first loop that scales sums anew as a greater value comes, as two."""
    effects, known = Effects(kernel), kernel.axes()
    why = NotLegal("no loop scales sums anew as a greater value comes")
    for loop in loops_in(kernel.function.body):
        axis = known.get(loop)
        if axis is None or len(effects.changed(loop.body)) < _CARRIED or not _raises(loop):
            continue
        if not axis.exact:
            why = NotLegal(f"the loop has another way out: {axis.reason}", loop.line)
            continue
        if not is_counted(axis, effects):
            why = NotLegal("the loop does not count in its head alone", loop.line)
            continue
        try:
            return _made(kernel, effects, _online(kernel, effects, loop))
        except NotLegal as reason:
            why = NotLegal(reason.reason, reason.line or loop.line)
    raise why


def _raises(loop: Loop) -> bool:
    """Whether powers stand in a loop that is innermost."""
    parts = [e for s in walk(loop.body) for top in s.expressions for e in every(top)]
    powers = any(isinstance(e, Call) and bare(e.function) in RAISING for e in parts)
    return powers and not loops_in(loop.body)


def _online(kernel: Kernel, effects: Effects, loop: Loop) -> _Online:
    """What a loop finds; raises NotLegal where it does more, or anything else."""
    for statement in walk(loop.body):
        if isinstance(statement, Leave):  # ``continue``
            raise NotLegal("a round is left before its end", statement.line)
    inside = effects.inside(loop)
    for access in kernel.reading.accesses:
        if access.own in inside and (access.mode != "load" or access.space == "local"):
            raise NotLegal("its rounds do more than to sum up", access.line)
    body = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    carried = [*effects.changed(loop.body)]
    kept, moving = kept_of(effects, body, carried)
    why = NotLegal("its rounds scale nothing anew", loop.line)
    for most in carried:
        if named(most.type.base, kernel.unit.aliases).name not in _MAX or most.type.depth:
            continue
        try:
            return _followed(effects, loop, most, carried, kept, moving, body)
        except NotLegal as reason:
            why = reason
    raise why


def kept_of(
    effects: Effects,
    body: Sequence[Statement],
    carried: Sequence[Variable],
    but: Callable[[Expr], bool] = lambda _: False,
) -> tuple[tuple[Statement, ...], frozenset[Variable]]:
    """The declarations that both loops make, and the locals that are followed instead.

    What those with a value of the kind ``but`` declare is followed as well.
    """
    moving, kept = {*carried}, list[Statement]()
    inner = [d for s in body for d in walk(s) if isinstance(d, Declare)]
    for declared in inner:
        values = [v.value for v in declared.variables]
        alone = declared in body and all(
            value is not None and _still(value, moving) and not but(value) for value in values
        )
        if alone and all(v in effects.lasting for v in declared.variables):
            kept.append(declared)
        else:
            moving |= {*declared.variables}
    return tuple(kept), frozenset(moving)


def _still(value: Expr, moving: set[Variable]) -> bool:
    parts = [*every(value)]
    calls = all(reads(e) for e in parts if isinstance(e, Call))
    return calls and not moving & names([value]) and not any(
        isinstance(e, Assign | Step) for e in parts
    )  # fmt: skip


def _followed(
    effects: Effects, loop: Loop, most: Variable, carried: Sequence[Variable],
    kept: tuple[Statement, ...], moving: frozenset[Variable], body: Sequence[Statement],
) -> _Online:  # fmt: skip
    kernel = effects.kernel
    ways = []
    for greater in (True, False):
        begin = {v: Value.factor(v.name) for v in carried}
        way = Following(kernel, most, moving, greater, begin)
        for statement in body:
            if statement not in kept:
                way.run(statement)
        ways.append(way)
    up, still = ways
    own, top = Value.factor(most.name), up.top
    if top is None or still.top != top or {v.name for v in moving} & top.factors:
        raise NotLegal("its rounds scale nothing anew", loop.line)
    if up.known[most] != top or still.known[most] != own:
        raise NotLegal(f"`{most.name}` does not become the greatest value", loop.line)
    by = _temperature(effects, loop, most, up)
    scale, sums = Value.factor(by) if by else Value.constant(1), []
    for sum_ in (v for v in carried if v is not most):
        old = Value.factor(sum_.name)
        added = up.known[sum_] - old * ((own - top) * scale).raised()
        if {v.name for v in carried} & added.factors:
            raise NotLegal(f"`{sum_.name}` is not scaled as the greatest value grows", loop.line)
        if still.known[sum_] != old + added * ((top - own) * scale).raised():
            raise NotLegal(f"`{sum_.name}` is not scaled as the greatest value grows", loop.line)
        sums.append((sum_, added))
    bases = {RAISING[bare(name)] for way in ways for name in way.raising}
    if not sums or len(bases) != 1:
        raise NotLegal("its rounds scale nothing anew", loop.line)
    return _Online(
        loop, most, top.spelled(), up.tested, up.even, up.raising[0], by, kept, tuple(sums)
    )


def _temperature(effects: Effects, loop: Loop, most: Variable, way: Following) -> str:
    """By what powers multiply how far apart two values are.

    A parameter, a local that stays, or a number above zero.
    """
    powers = {p for v in way.known.values() for (power, _), _ in v.terms for p, _ in power}
    found = {p[1 - p.index(most.name)] for p in powers if most.name in p and len(p) == 2}
    function = effects.kernel.function
    around = {v for s in walk(function.body) if isinstance(s, Declare) for v in s.variables}
    inner = {v for s in walk(loop) if isinstance(s, Declare) for v in s.variables}
    still = {*function.parameters} - {*effects.changed(function.body)}
    still |= (around & effects.lasting) - inner
    names_ = {v.name for v in still if not v.type.depth and not v.array}
    known = names_ - {v.name for v in inner}
    by = next(iter(found)) if len(found) == 1 else ""
    return by if by in known or _NUMBER.fullmatch(by) else ""


def _made(kernel: Kernel, effects: Effects, found: _Online) -> Kernel:
    effects.straightforward()
    most, top = found.most.name, found.top
    kind = named(found.most.type.base, kernel.unit.aliases).name
    apart = f"{top} - {most}" if " + " not in top and " - " not in top else f"({top}) - {most}"
    grows = f"if ({top} > {most}) {most} = {top};" if found.tested else (
        f"{most} = {_MAX[kind]}({most}, {top});")  # fmt: skip
    begin = kernel.fresh(f"{most}_begin")

    def times(words: str) -> str:
        return f"{found.by} * ({words})" if found.by else words

    scaled, added = [], []
    for sum_, beside in found.sums:
        if not _begins_with_nothing(kernel, effects, sum_, found.loop):
            scaled.append(f"{sum_.name} *= {found.raising}({times(f'{begin} - {most}')});")
        power = f"{found.raising}({times(apart)})"
        words = beside.spelled()
        factor = f"({words})" if " + " in words or " - " in words else words
        added.append(f"{sum_.name} += {power if words == '1' else f'{power} * {factor}'};")
    made: list[Statement] = [_round(found, [grows])]
    if scaled:
        made.insert(0, lines(f"const {kind} {begin} = {most};"))
        again = "\n".join(scaled)
        made.append(lines(f"if ({most} > {begin}) {{\n{again}\n}}"))
    made.append(_round(found, added))
    whole = kernel.rewritten(edited(kernel.function.body, {found.loop: tuple(made)}))
    cold = found.by and not _NUMBER.fullmatch(found.by)
    begins = found.most.value
    alike = found.even and begins is not None and is_finite(begins, kind)
    more = ([_COLD] if cold else []) + ([] if alike else [_INFINITE])
    return replace(whole, arithmetic=(*whole.arithmetic, *more))


def _round(found: _Online, steps: Sequence[str]) -> Statement:
    """The loop with other rounds."""
    body = Block(None, found.loop.line, (*found.kept, *map(lines, steps)))
    return replace(found.loop, span=None, body=body, head=None, foot=None)


def _begins_with_nothing(kernel: Kernel, effects: Effects, sum_: Variable, loop: Loop) -> bool:
    """Whether a sum is still the 0 that it was declared with as a loop begins."""
    if not isinstance(sum_.value, Literal) or sum_.value.value != 0:
        return False
    blocks = [s for s in walk(kernel.function.body) if isinstance(s, Block) and loop in s.body]
    for block in blocks:
        before = block.body[: block.body.index(loop)]
        at = [n for n, s in enumerate(before) if isinstance(s, Declare) and sum_ in s.variables]
        if at and sum_ not in effects.changed(*before[at[0] + 1 :]):
            return True
    return False
