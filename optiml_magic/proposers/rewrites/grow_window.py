"""Sums over growing windows and running ranges, of which each round began anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from optiml_magic.kernels.expressions import Lambda
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.backward import backward
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.bordered import bordered
from optiml_magic.kernels.primitives.clamped import clamped
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.growing import DEPENDS, SHRINKS, Growing, growing
from optiml_magic.kernels.primitives.grown import grown
from optiml_magic.kernels.primitives.hoisted import hoisted
from optiml_magic.kernels.primitives.in_ints import in_ints
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.recentred import recentred
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.symbols import Compare
from optiml_magic.kernels.tree import expressions
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_LONGEST = 128  # rounds within that are written out: ours
_FEWEST = 2  # rounds of which one has another before it
_SOME = 8  # rounds where nothing tells how many there are: ours
_MANY = 256  # rounds that are looked at one by one: ours


class GrowWindow(KernelRule):
    """A window that grows until it holds enough, running means, sums of all beginnings."""

    name = "grow_window"
    before = (in_ints, *PLAIN, in_full, direct, clamped, in_register, hoisted)
    teaches = (
        "Each round of a loop summed up a range anew that is the one of the round before and a "
        "little more, so that n rounds took n * n / 2 steps. The sum is kept from round to round, "
        "and only what is new is added: an element in one direction, a ring in two. Where the "
        "rounds are few and their number is known, they are written out, and no ring asks where "
        "its corners are."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if any(isinstance(e, Lambda) for e in expressions(kernel.function.body)):
            return  # what stands around its loops could not be written anew
        try:
            kernel = _ready(kernel)
            found = growing(kernel)
        except NotLegal as reason:
            if reason.line:
                yield Refused(reason.reason, reason.line)
            return
        made = grown(kernel)
        if isinstance(made, Refused):
            yield made
            return
        names = ", ".join(dict.fromkeys(k.local.name for one in found for k in one.kept))
        title = f"keep {names} from round to round, and add what is new"
        gain = max(_gain(kernel, one) for one in found)
        promise = Hypothesis(
            TIME, "lower", "a round adds what the one before had not", (1.0, 2 * gain)
        )  # fmt: skip
        prior, changes = round(min(0.95, 1 - 0.4 / gain), 2), made.arithmetic
        given = _given(kernel, found)
        if given is not None:
            where = "".join(f", where {name} is {size}" for name, size in given.items())
            steps = [partial(sized, values=given)] if given else []
            yield Site(
                "out", f"{title}, rounds written out{where}",
                partial(in_turn, kernel, [*steps, partial(grown, out=True), _away]),
                min(0.97, prior + 0.1), promise, arithmetic=changes,
            )  # fmt: skip
        yield Site("rim", title, partial(grown, kernel), prior, promise, arithmetic=changes)


def _away(kernel: Kernel) -> Kernel:
    """Where borders are asked for, nothing of that far from them."""
    return where_legal(bordered, kernel)


def _ready(kernel: Kernel) -> Kernel:
    """The kernel, with rounds turned or counters moved where ranges grow so alone.

    Raises NotLegal where nothing grows so either.
    """
    try:
        growing(kernel)
    except NotLegal as reason:
        others = list[Kernel | Refused]()
        if reason.reason.startswith(DEPENDS):
            others = [recentred(kernel)]
        if reason.reason == SHRINKS:
            loops = enumerate(loops_in(kernel.function.body))
            others = [backward(kernel, at) for at, loop in loops if loops_in(loop.body)]
        for made in others:
            with suppress(NotLegal):
                if isinstance(made, Kernel) and growing(made):
                    return made
        raise
    return kernel


@dataclass(frozen=True)
class _Rounds:
    """The counters of the outer loop's rounds at the measured sizes, by scalars of these names."""

    counters: range
    names: frozenset[str]


def _rounds(kernel: Kernel, one: Growing) -> _Rounds | None:
    """As many rounds as there are at most; a test may end them before."""
    axis = kernel.axes().get(one.outer)
    begin = value(kernel, axis.start) if axis is not None and axis.start is not None else None
    if axis is None or axis.start is None or begin is None:
        return None
    counts = dict[int, frozenset[str]]()
    for part in axis.test.conjuncts():
        by = part.form.coefficient(axis.name) if isinstance(part, Compare) else None
        if not isinstance(part, Compare) or by is None or (by.value or 0) >= 0 or part.op != ">=":
            continue
        rest = part.form.without([axis.name])
        known = value(kernel, rest)
        if known is not None and by.value is not None:
            counts[max(0, known // -by.value + 1)] = kernel.reading.symbols.made_of(rest)
    if not counts:
        return None
    count = min(counts)
    first = begin + one.step * one.moved_ahead
    names = counts[count] | kernel.reading.symbols.made_of(axis.start)
    return _Rounds(range(first, first + one.step * count, one.step), names)


def _gain(kernel: Kernel, one: Growing) -> float:
    """How many times as much is summed up as there is in the last round."""
    found = _rounds(kernel, one)
    count = len(found.counters) if found is not None else _SOME
    rough = (count + 1) / (1 + max(len(one.around(r)) + 1 for r in one.ranges))
    if found is None or not count:
        return max(1.0, rough)
    sizes = [_all(one, at) for at in (found.counters[-1], *found.counters[:_MANY])]
    if count > _MANY or None in sizes or not sizes[0]:
        return max(1.0, rough)
    return max(1.0, sum(n or 0 for n in sizes[1:]) / sizes[0])


def _all(one: Growing, counter: int) -> int | None:
    sizes = one.sizes(Polynomial.constant(counter))
    return None if None in sizes else sum(n or 0 for n in sizes)


def _given(kernel: Kernel, found: Sequence[Growing]) -> dict[str, int] | None:
    """The sizes with which all rounds can be written out; None where they are too many."""
    scalars = kernel.facts.scalars if kernel.facts is not None else {}
    given = dict[str, int]()
    for one in found:
        rounds = _rounds(kernel, one)
        if one.in_order or rounds is None or len(rounds.counters) < _FEWEST:
            return None
        most = _all(one, rounds.counters[-1])
        if most is None or most > _LONGEST or not rounds.names <= scalars.keys():
            return None
        given |= {name: int(scalars[name]) for name in sorted(rounds.names)}
    return given
