"""Loops with constant bounds followed round by round: which elements a thread touches, in order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.symbols import Always, Compare, Condition, Every, Some

_MOST = 4096  # accesses that are followed


@dataclass(frozen=True, eq=False)
class Touch:
    """An access in one round of its loops; data decide on it where something is ``open``."""

    access: Access
    rounds: Mapping[str, int]
    open: frozenset[Condition]

    @property
    def surely(self) -> bool:
        return not self.open


def touches(kernel: Kernel, axis: Axis) -> Iterator[Touch]:
    """Those in the rounds of a loop and of those in it, in the order in which a thread makes them.

    Raises NotLegal where how many rounds there are is not said by numbers.
    """
    own = [a for a in kernel.reading.accesses if axis.name in a.loops]
    depth = own[0].loops.index(axis.name) if own else 0
    known = {part for condition in axis.guard for part in condition.conjuncts()}
    if not own:
        return
    for count, touch in enumerate(_rounds(kernel, own, depth, {}, known)):
        if count == _MOST:
            raise NotLegal("its loops have too many rounds to be written out", axis.line)
        yield touch


def _rounds(
    kernel: Kernel, own: Sequence[Access], depth: int, at: dict[str, int], known: set[Condition]
) -> Iterator[Touch]:
    """All that accesses of one loop do, which is at ``depth`` in the loops around each of them."""
    axis = kernel.reading.axis(own[0].loops[depth])
    if not axis.exact or axis.first:
        raise NotLegal("the loop has another way out", axis.line)
    value = 0
    while True:
        here = {**at, axis.name: value}
        more = truth(axis.test, here)
        if more is None:
            raise NotLegal("how many rounds a loop has is not a number", axis.line)
        if not more:
            return
        if value > _MOST:
            raise NotLegal("its loops have too many rounds to be written out", axis.line)
        for run in _runs(own, depth + 1):
            if len(run[0].loops) > depth + 1:
                yield from _rounds(kernel, run, depth + 1, here, known)
                continue
            yield from _touch(run[0], here, known)
        value += 1


def followed(
    kernel: Kernel, own: Sequence[Access], depth: int, known: set[Condition]
) -> Iterator[Touch]:
    """What accesses within so many loops do, one after the other, where ``known`` conditions hold.

    Raises NotLegal where how many rounds further loops have is not said by numbers.
    """
    for run in _runs(own, depth):
        if len(run[0].loops) > depth:
            yield from _rounds(kernel, run, depth, {}, known)
        else:
            yield from _touch(run[0], {}, known)


def _touch(access: Access, here: Mapping[str, int], known: set[Condition]) -> Iterator[Touch]:
    parts = [p for c in access.guard for p in c.conjuncts() if p not in known]
    holds = {part: truth(part, here) for part in parts}
    if False not in holds.values():
        yield Touch(access, here, frozenset(part for part in holds if holds[part] is None))


def _runs(own: Sequence[Access], depth: int) -> Iterator[Sequence[Access]]:
    """Neighbours in one inner loop together, others one by one."""
    run: list[Access] = []
    for access in own:
        inner = access.loops[depth : depth + 1]
        if run and inner and run[0].loops[depth : depth + 1] == inner:
            run.append(access)
            continue
        if run:
            yield run
        run = [access]
    if run:
        yield run


def truth(condition: Condition, at: Mapping[str, int]) -> bool | None:
    """Whether a condition holds in these rounds; None where more than they decide."""
    match condition:
        case Always(value=value):
            return value
        case Compare(op=op, form=form):
            found = number(form, at)
            if found is None:
                return None
            return {">=": found >= 0, "==": found == 0, "!=": found != 0}[op]
        case Every(parts=parts):
            holds = [truth(part, at) for part in parts]
            return False if False in holds else None if None in holds else True
        case Some(parts=parts):
            holds = [truth(part, at) for part in parts]
            return True if True in holds else None if None in holds else False
    return None


def number(form: Polynomial, at: Mapping[str, int]) -> int | None:
    """A form of counters alone in these rounds."""
    total = 0
    for monomial, factor in form.terms:
        if not at.keys() >= {*monomial}:
            return None
        total += factor * prod(at[name] for name in monomial)
    return total
