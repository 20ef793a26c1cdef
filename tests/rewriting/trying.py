"""Rules applied to a program, and every result run beside it on the emulated device.

All runs look for hazards and for accesses out of bounds, in two orders of the blocks, at the sizes
that the rules were told and at others. A program that fails in one of them by itself is no test of
a rule: its maker is at fault, and that is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from random import Random
from typing import Any, Literal

import numpy as np

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Array, Job
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.errors import OptimlError, UsageError
from optiml_magic.model.build import CompileFailure
from optiml_magic.preparation import compiled
from optiml_magic.problem import Problem, prepare
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program

from .offers import NAMES, Offer, Refused, offers
from .writing import Made

_CHIP = chip("h200")
_INSTRUCTIONS = 20_000_000
_RTOL, _ATOL = 2e-4, 2e-5  # where arithmetic rounds, and its order may change

End = Literal["same", "narrowed", "wrong", "hazard", "fault", "does not compile", "does not fit"]
Outputs = Mapping[str, Array]


@dataclass(frozen=True)
class Application:
    """A rule applied to a program.

    Attributes:
        before: the program that the rule was asked about.
        end: ``same`` where nothing differs; ``narrowed`` where the result has a ``require`` that
            leaves some of the sizes out, and nothing differs at the others.
        detail: what differs, and where.
        again: whether ``before`` is what a rule had made.
    """

    rule: str
    title: str
    before: str
    after: str
    end: End
    detail: str = ""
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


class Stand:
    """One program at its two sets of sizes, with what it leaves behind there."""

    def __init__(self, made: Made) -> None:
        self.made = made
        try:
            self._problems = [prepare(made.task(s), seeds=1) for s in (made.sizes, made.others)]
        except OptimlError as error:
            raise IllMadeError(f"{error}\n{made}\n{made.text}") from error
        self._device = EmulatedDevice("h200")
        found = self._runs(self._problems[0].program.text, wanted=None)
        if isinstance(found, tuple):
            raise IllMadeError(f"{found}\n{made}\n{made.text}")
        self._wanted = found

    @property
    def text(self) -> str:
        """The program with its launches."""
        return self._problems[0].program.text

    def applied(self, offer: Offer, before: str) -> Application:
        """Run what a rule made, and compare."""
        found = self._runs(offer.text, self._wanted)
        end, detail = found if isinstance(found, tuple) else ("same", "")
        return Application(offer.rule, offer.title, before, offer.text, end, detail)

    def _runs(self, text: str, wanted: list[Outputs] | None) -> list[Outputs] | tuple[End, str]:
        """What it leaves at both sizes, or how it fails; compared with ``wanted``."""
        try:
            program = parse_program(text)
        except UsageError as unfit:
            return "does not fit", str(unfit)
        interface = self._problems[0].interface
        bound = compiled(program, interface, _compiler(), CompileOptions(), _CHIP)
        if isinstance(bound, UsageError):
            return "does not fit", str(bound)
        if isinstance(bound, CompileFailure):
            return "does not compile", str(bound.errors[0])
        left: list[Outputs] = []
        narrowed: tuple[End, str] | None = None
        for at, problem in enumerate(self._problems):
            first = problem.first
            try:
                plan = bound.plan(first.values, first.shapes)
            except UsageError as unfit:
                if not program.requires:
                    return "does not fit", str(unfit)
                narrowed = "narrowed", str(unfit)
                continue
            self._device.put(first.case)
            compare = wanted[at] if wanted is not None else None
            for order in ("forward", "reverse"):
                job = Job(first.case.key, plan, 7, False, _INSTRUCTIONS, order, checks=True)
                ran = self._device.execute(bound.build, job)
                where = f"{order}, {_sizes(problem)}"
                if ran.fault is not None:
                    return "fault", f"{ran.fault.message} in line {ran.fault.line} ({where})"
                errors = [h for h in ran.hazards if h.severity == "error"]
                if errors:
                    one = errors[0]
                    return "hazard", f"{one.kind}: {one.message}, line {one.line} ({where})"
                if ran.modified_inputs:
                    return "wrong", f"wrote to {ran.modified_inputs} ({where})"
                outputs = self._outputs(problem)
                compare = compare or outputs
                found = self._difference(compare, outputs)
                if found:
                    return "wrong", f"{found} ({where})"
            left.append(compare)
        return narrowed or left

    def _outputs(self, problem: Problem) -> Outputs:
        case = problem.first.case
        return {
            b.name: self._device.read(case.key, b.name) for b in case.buffers if b.role != "input"
        }

    def _difference(self, wanted: Outputs, got: Outputs) -> str:
        """The first element that differs, or nothing. Zeros of either sign are the same."""
        for name, array in wanted.items():
            for field in array.dtype.names or ("",):
                one, other = (a[field] if field else a for a in (array, got[name]))
                same = _same(one, other, exact=self.made.exact)
                if not same.all():
                    first = tuple(int(axis[0]) for axis in np.nonzero(~same))
                    return (
                        f"{name}{list(first)} is {other[first]}, not {one[first]}; "
                        f"{np.count_nonzero(~same)} of {same.size} differ"
                    )
        return ""


def _same(one: Array, other: Array, *, exact: bool) -> Any:
    """Where the elements are the same; of what nobody wrote, the bits."""
    bits = [np.ascontiguousarray(a).view(f"u{a.itemsize}") for a in (one, other)]
    if exact or one.dtype.kind != "f":
        return (bits[0] == bits[1]) | (one == other)
    with np.errstate(all="ignore"):
        return (bits[0] == bits[1]) | np.isclose(other, one, rtol=_RTOL, atol=_ATOL)


def _sizes(problem: Problem) -> str:
    return ", ".join(f"{n} = {v}" for n, v in problem.first.values.items() if isinstance(v, int))


def tried(made: Made, rng: Random, *, each: int = 2) -> Trial:
    """Apply at most ``each`` ideas of every rule, then those of two rules to one of the results.

    Raises IllMadeError where the program itself does not run cleanly.
    """
    stand = Stand(made)
    applied: list[Application] = []
    refused: list[Refused] = []
    seen = {stand.text}
    parents, silent = [stand.text], NAMES
    for level in range(2):
        sound = []
        for parent in parents:
            chosen, more = _chosen(parent, rng, 1 if level else each)
            chosen = rng.sample(chosen, min(len(chosen), 2)) if level else chosen
            refused += more
            if level == 0:
                told = {o.rule for o in chosen} | {r.rule for r in more}
                silent = tuple(name for name in NAMES if name not in told)
            for offer in chosen:
                if offer.text in seen:
                    continue
                seen.add(offer.text)
                applied.append(replace(stand.applied(offer, parent), again=level > 0))
                if applied[-1].sound:
                    sound.append(offer.text)
        parents = [rng.choice(sound)] if sound else []
    return Trial(made, tuple(applied), tuple(refused), silent)


def _chosen(text: str, rng: Random, each: int) -> tuple[list[Offer], list[Refused]]:
    by_rule: dict[str, list[Offer]] = {}
    refused = []
    for found in offers(text):
        if isinstance(found, Refused):
            refused.append(found)
        else:
            by_rule.setdefault(found.rule, []).append(found)
    chosen: list[Offer] = []
    for ideas in by_rule.values():
        chosen += ideas if len(ideas) <= each else rng.sample(ideas, each)
    return chosen, refused
