"""Rules applied to a program, and every result run beside it on the emulated device.

All runs look for hazards and for accesses out of bounds, in two orders of the blocks, at the sizes
that the rules were told and at others. A program that fails in one of them by itself is no test of
a rule: its maker is at fault, and that is an error.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any, Literal

import numpy as np

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Array, Execution, Job
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.errors import OptimlError, UsageError
from optiml_magic.model.build import CompileFailure
from optiml_magic.model.facts import Facts
from optiml_magic.preparation import Bound, compiled
from optiml_magic.problem import prepare
from optiml_magic.problem.facts import FactFinder
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program

from .offers import NAMES, Offer, Refused, offers
from .writing import Made

_CHIP = chip("h200")
_INSTRUCTIONS = 100_000_000
_AGAIN = 3  # rules that are asked about what a rule made
_RTOL, _ATOL = 2e-4, 2e-5  # where arithmetic rounds, and its order may change

End = Literal[
    "same", "narrowed", "wrong", "hazard", "fault", "inexact", "does not compile", "does not fit"
]
Outputs = Mapping[str, Array]


@dataclass(frozen=True)
class Application:
    """A rule applied to a program.

    Attributes:
        before: the program that the rule was asked about.
        end: ``same`` where nothing differs; ``narrowed`` where the result has a ``require`` that
            leaves some of the sizes out, and nothing differs at the others; ``inexact`` where bits
            differ by rounding alone, and the rule says that it changes no arithmetic.
        detail: what differs, and where.
        steps: the primitives that it was made with, by their files.
        again: whether ``before`` is what a rule had made.
    """

    rule: str
    title: str
    before: str
    after: str
    end: End
    detail: str = ""
    steps: tuple[str, ...] = ()
    again: bool = False

    @property
    def sound(self) -> bool:
        return self.end in ("same", "narrowed")


@dataclass(frozen=True)
class Trial:
    """What became of one program: applications, refusals, and the rules that had no place in it."""

    made: Made
    applied: tuple[Application, ...]
    refused: tuple[Refused, ...]
    silent: tuple[str, ...]

    @property
    def unsound(self) -> tuple[Application, ...]:
        return tuple(a for a in self.applied if not a.sound)


class IllMadeError(AssertionError):
    """A program of the generator that does not compile, or is not race-free and in bounds."""


@cache
def _compiler() -> CachedCompiler:
    return CachedCompiler(NvrtcCompiler(), resolve().compiled)


@dataclass(frozen=True)
class _Failure:
    end: End
    detail: str


class Stand:
    """One program at its two sets of sizes, with what it leaves behind there."""

    def __init__(self, made: Made) -> None:
        self.made = made
        try:
            self._problems = [prepare(made.task(s), seeds=1) for s in (made.sizes, made.others)]
        except OptimlError as error:
            raise IllMadeError(f"{error}\n{made}\n{made.text}") from error
        self._device = EmulatedDevice("h200")
        self._wanted: list[Outputs] = []

    def run(self) -> None:
        """Run the program itself; raises IllMadeError where that is not clean."""
        failure = self._failure(self.text, rounded=False)
        if failure is not None:
            raise IllMadeError(f"{failure}\n{self.made}\n{self.made.text}")

    @property
    def text(self) -> str:
        """The program with its launches."""
        return self._problems[0].program.text

    def facts(self, text: str) -> Facts:
        """The facts of a program at the sizes that the rules are told."""
        problem = self._problems[0]
        bound = self._bound(text)
        if isinstance(bound, _Failure):
            raise IllMadeError(f"{bound}\n{self.made}\n{text}")
        plan = bound.plan(problem.first.values, problem.first.shapes)
        return FactFinder(problem, _CHIP)(bound.program, plan)

    def applied(self, offer: Offer, before: str, *, rounded: bool = False) -> Application:
        """Run what a rule made of ``before``, and compare; ``rounded`` if that may differ already.

        Raises IllMadeError where the program itself does not run cleanly.
        """
        if not self._wanted:
            self.run()
        found = self._failure(offer.text, rounded=rounded or offer.rounds) or _Failure("same", "")
        return Application(
            offer.rule, offer.title, before, offer.text, found.end, found.detail, offer.steps
        )

    def _failure(self, text: str, *, rounded: bool) -> _Failure | None:
        """How a program fails; the first one to run is what others are compared with."""
        bound = self._bound(text)
        if isinstance(bound, _Failure):
            return bound
        narrowed = None
        for at, problem in enumerate(self._problems):
            first = problem.first
            try:
                plan = bound.plan(first.values, first.shapes)
            except UsageError as unfit:
                if not bound.program.requires:
                    return _Failure("does not fit", str(unfit))
                narrowed = _Failure("narrowed", str(unfit))
                continue
            self._device.put(first.case)
            for order in ("forward", "reverse"):
                job = Job(first.case.key, plan, 7, False, _INSTRUCTIONS, order, checks=True)
                failure = _unclean(self._device.execute(bound.build, job))
                if failure is None:
                    failure = self._compared(at, rounded=rounded)
                if failure is not None:
                    sizes = ", ".join(
                        f"{n} = {v}" for n, v in first.values.items() if isinstance(v, int)
                    )
                    return replace(failure, detail=f"{failure.detail} ({order}, {sizes})")
        return narrowed

    def _bound(self, text: str) -> Bound | _Failure:
        try:
            program = parse_program(text)
        except UsageError as unfit:
            return _Failure("does not fit", str(unfit))
        interface = self._problems[0].interface
        bound = compiled(program, interface, _compiler(), CompileOptions(), _CHIP)
        if isinstance(bound, UsageError):
            return _Failure("does not fit", str(bound))
        if isinstance(bound, CompileFailure):
            return _Failure("does not compile", str(bound.errors[0]))
        return bound

    def _compared(self, at: int, *, rounded: bool) -> _Failure | None:
        """What the run that just ended left behind, against what the first one did."""
        case = self._problems[at].first.case
        names = [b.name for b in case.buffers if b.role != "input"]
        got = {name: self._device.read(case.key, name) for name in names}
        if at == len(self._wanted):
            self._wanted.append(got)
        wrong = _difference(self._wanted[at], got, exact=self.made.exact)
        if wrong:
            return _Failure("wrong", wrong)
        inexact = "" if rounded else _difference(self._wanted[at], got, exact=True, bits=True)
        return _Failure("inexact", inexact) if inexact else None


def _unclean(ran: Execution) -> _Failure | None:
    if ran.fault is not None:
        return _Failure("fault", f"{ran.fault.message}, line {ran.fault.line}")
    for hazard in ran.hazards:
        if hazard.severity == "error":
            return _Failure("hazard", f"{hazard.kind}: {hazard.message}, line {hazard.line}")
    if ran.modified_inputs:
        return _Failure("wrong", f"wrote to {', '.join(ran.modified_inputs)}")
    return None


def _difference(wanted: Outputs, got: Outputs, *, exact: bool, bits: bool = False) -> str:
    """The first element that differs, or nothing.

    Zeros of either sign are the same, and so is whatever is no number, unless its ``bits`` count.
    """
    for name, array in wanted.items():
        for field in array.dtype.names or ("",):
            one, other = (a[field] if field else a for a in (array, got[name]))
            same = _same(one, other, exact=exact, bits=bits)
            if not same.all():
                first = tuple(int(axis[0]) for axis in np.nonzero(~same))
                return (
                    f"{name}{list(first)} is {other[first]}, not {one[first]}; "
                    f"{np.count_nonzero(~same)} of {same.size} differ"
                )
    return ""


def _same(one: Array, other: Array, *, exact: bool, bits: bool) -> Any:
    """Where the elements are the same; of what nobody wrote, the bits."""
    words = [np.ascontiguousarray(a).view(f"u{a.itemsize}") for a in (one, other)]
    same = (words[0] == words[1]) | (one == other)
    if bits or one.dtype.kind != "f":
        return same
    same |= np.isnan(one) & np.isnan(other)
    with np.errstate(all="ignore"):
        return same if exact else same | np.isclose(other, one, rtol=_RTOL, atol=_ATOL)


def tried(
    made: Made,
    rng: Random,
    *,
    each: int = 2,
    rules: Collection[str] = NAMES,
    wanted: Collection[str] = (),
) -> Trial:
    """Apply at most ``each`` ideas of every rule, then those of a few rules to one of the results.

    Where rules or primitives are ``wanted``, what is made without them is not run.
    Raises IllMadeError where the program itself does not run cleanly.
    """
    stand = Stand(made)
    first, refused = _chosen(stand, stand.text, rng, each, rules)
    told = {found.rule for found in (*first, *refused)}
    seen = {stand.text}
    applied: list[Application] = []
    sound: list[Offer] = []
    for offer in first:
        if offer.text not in seen and _uses(offer, wanted):
            seen.add(offer.text)
            applied.append(stand.applied(offer, stand.text))
            sound += [offer] if applied[-1].sound else []
    if sound:
        parent = rng.choice(sound)
        few = rng.sample(tuple(rules), min(len(rules), _AGAIN))
        second, more = _chosen(stand, parent.text, rng, 1, few)
        refused += more
        for offer in second:
            if offer.text not in seen and _uses(offer, wanted):
                seen.add(offer.text)
                found = stand.applied(offer, parent.text, rounded=parent.rounds)
                applied.append(replace(found, again=True))
    silent = tuple(name for name in NAMES if name in rules and name not in told)
    return Trial(made, tuple(applied), tuple(refused), silent)


def _uses(offer: Offer, wanted: Collection[str]) -> bool:
    return not wanted or not {offer.rule, *offer.steps}.isdisjoint(wanted)


def _chosen(
    stand: Stand, text: str, rng: Random, each: int, rules: Collection[str]
) -> tuple[list[Offer], list[Refused]]:
    found = list(offers(text, stand.text, lambda: stand.facts(text), rng, each=each, rules=rules))
    return (
        [one for one in found if isinstance(one, Offer)],
        [one for one in found if isinstance(one, Refused)],
    )
