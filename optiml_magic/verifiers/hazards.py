"""Hazards of a run that may have given the right answer, and what they make of a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from optiml_magic.devices.base import Case, Device, Job
from optiml_magic.model.build import Build
from optiml_magic.model.hazard import Hazard, HazardKind
from optiml_magic.model.verdict import Outcome, OutputCheck, Verdict, Writer

_INSTRUCTIONS = 1 << 30  # about ten seconds of checked loops; the ordinary budget is far larger
_OUTCOMES: dict[HazardKind, Outcome] = {
    "race": Outcome.RACE,
    "uninitialised": Outcome.UNINITIALISED,
    "invalid_lane": Outcome.INVALID_LANE,
    "barrier_divergence": Outcome.BARRIER,
    "missed_phase": Outcome.BARRIER,
    "deadlock": Outcome.BARRIER,
    "out_of_bounds": Outcome.OUT_OF_BOUNDS,
    "misaligned": Outcome.MISALIGNED,
    "trap": Outcome.TRAP,
}
# A run that ended for one of these reasons says nothing of the kernel.
UNFINISHED = (Outcome.TIMEOUT, Outcome.UNSUPPORTED, Outcome.CRASHED)


@dataclass(frozen=True)
class Inspection:
    """What was found; ``unchecked`` says why not everything was looked at."""

    hazards: tuple[Hazard, ...]
    unchecked: str = ""

    @property
    def errors(self) -> tuple[Hazard, ...]:
        """Those that make a right answer a wrong one some day."""
        return tuple(hazard for hazard in self.hazards if hazard.severity == "error")


class Inspector(Protocol):
    """Looks for hazards."""

    @property
    def name(self) -> str:
        """Who looks."""

    def put(self, case: Case) -> None:
        """A set of inputs that runs may be on."""

    def warm(self) -> None:
        """Somebody will ask soon: start what takes long to start."""

    def close(self) -> None:
        """End what was started and not used."""

    def inspect(self, runs: Sequence[tuple[Build, Job]]) -> list[Inspection]:
        """What was found in each run."""

    def writer(self, build: Build, job: Job, check: OutputCheck) -> Writer | None:
        """Who wrote the first wrong element of an output, which this job left there."""


class DeviceInspector:
    """A device whose own checks find hazards: the emulated one."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self.name = device.name

    def warm(self) -> None:
        """The device runs already."""

    def close(self) -> None:
        """The device is its owner's."""

    def put(self, case: Case) -> None:
        """It lies there: whoever verifies put it there."""

    def inspect(self, runs: Sequence[tuple[Build, Job]]) -> list[Inspection]:
        return [self._inspection(build, job) for build, job in runs]

    def _inspection(self, build: Build, job: Job) -> Inspection:
        budget = min(job.instructions, _INSTRUCTIONS)
        execution = self._device.execute(
            build, replace(job, checks=True, count=False, instructions=budget)
        )
        fault = execution.fault
        if fault is not None and fault.outcome in UNFINISHED:
            kept = tuple(h for h in execution.hazards if h.kind != "instruction_limit")
            return Inspection(kept, f"the checked run did not end: {fault.message}")
        return Inspection(execution.hazards)

    def writer(self, build: Build, job: Job, check: OutputCheck) -> Writer | None:
        """None as well where a second run leaves something else there: a race decides it."""
        watch = check.name, check.first_index
        again = self._device.execute(
            build, replace(job, checks=True, count=False, watch=watch, instructions=_INSTRUCTIONS)
        )
        found = next((c for c in again.checks if c.name == check.name), None)
        same = found is not None and (found.first_index, found.got) == (
            check.first_index,
            check.got,
        )
        return again.writer if same else None


def inspected(verdict: Verdict, inspection: Inspection) -> Verdict:
    """The verdict with what was found: a passed one fails where a hazard is an error."""
    notes = [f"line {h.line}: {h.message}" for h in inspection.hazards if h.severity == "warning"]
    if inspection.unchecked:
        notes.append(f"hazards: not all were looked for; {inspection.unchecked}")
    verdict = replace(verdict, hazards=inspection.hazards, notes=(*verdict.notes, *notes))
    errors = inspection.errors
    if not verdict.passed or not errors:
        return verdict
    first = errors[0]
    return replace(
        verdict,
        outcome=_OUTCOMES.get(first.kind, Outcome.TRAP),
        summary=describe(first, more=len(errors) - 1),
        line=first.line,
        fix=first.fix,
    )


def describe(hazard: Hazard, *, more: int = 0) -> str:
    """A hazard in a line: what, where else, by whom, how often."""
    other = ""
    if hazard.other_line and hazard.other_line != hazard.line:
        other = f" (the other line: {hazard.other_line})"
    who = f" by thread {hazard.thread} of block {hazard.block}" if hazard.thread else ""
    whom = ""
    if hazard.kind == "race" and hazard.other_thread:
        whom = f" and thread {hazard.other_thread} of block {hazard.other_block}"
    times = f", {hazard.count} times" if hazard.count > 1 else ""
    rest = f"; and {more} more hazard{'s' if more > 1 else ''}" if more else ""
    return f"{hazard.message}{other}{who}{whom}{times}{rest}"


def report(hazards: Sequence[Hazard]) -> list[str]:
    """Each hazard in a line, its fix below it."""
    lines = []
    for hazard in hazards:
        lines.append(f"[{hazard.severity}] {hazard.kind}, line {hazard.line}: {describe(hazard)}")
        if hazard.fix:
            lines.append(f"    fix: {hazard.fix}")
    return lines
