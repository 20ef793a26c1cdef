"""Two results beside each other: how fast, why, and what differs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from optiml_magic.calling import Kernels
from optiml_magic.model.evaluation import Step
from optiml_magic.model.measurement import speedup_interval
from optiml_magic.reports import columns
from optiml_magic.reports.diff import between
from optiml_magic.reports.markup import Markup, element
from optiml_magic.reports.quantities import ratio, seconds
from optiml_magic.reports.shown import Diff
from optiml_magic.reports.summary import Summary
from optiml_magic.result import Result


@dataclass(frozen=True)
class Comparison:
    """Two runs by the names that the user gave them."""

    names: tuple[str, str]
    runs: tuple[Summary, Summary]
    inputs: tuple[str, str]  # shapes and scalars; "" where nothing tells

    @classmethod
    def of(cls, names: tuple[str, str], results: tuple[Result, Result]) -> Comparison:
        """Two results, of this session or of earlier ones."""
        one, two = results
        return cls(names, (one.summary, two.summary), (_inputs(one), _inputs(two)))

    @property
    def headline(self) -> str:
        """Which winner is faster, or why that cannot be told."""
        (one, two), (a, b) = self.names, self.runs
        if a.journal is not None and b.journal is not None and a.journal.name == b.journal.name:
            return f"{one} and {two} are the same run, {a.journal.stem}"
        if a.task != b.task:
            return f"two kernels, {a.task} and {b.task}: their times do not compare"
        if all(self.inputs) and self.inputs[0] != self.inputs[1]:
            return f"{one} and {two} had inputs of other sizes: their times do not compare"
        first, second = (run.winner.evaluation.measurement for run in self.runs)
        if first is None or second is None:
            return f"{one if first is None else two} has no time: its input kernel failed"
        if (first.source, first.chip) != (second.source, second.chip):
            told = (f"{m.source} on {m.chip}" for m in (first, second))
            return f"times do not compare: {one} is {' and '.join(told)}"
        gain, low, high = speedup_interval(first, second)
        if low > 1 or high < 1:
            fast, slow = (two, one) if low > 1 else (one, two)
            gain, low, high = (gain, low, high) if low > 1 else (1 / gain, 1 / high, 1 / low)
            span = f"between {ratio(low)} and {ratio(high)}"
            return f"{fast} is {ratio(gain)} faster than {slow}, {first.source} ({span})"
        return f"no significant difference: {two} at {ratio(gain)} the speed of {one}"

    @property
    def _related(self) -> bool:
        """Whether the programs are of one kernel, so that their difference says something."""
        return self.runs[0].task == self.runs[1].task

    @property
    def facts(self) -> list[tuple[str, str, str]]:
        """What both say, beside each other."""
        told = [list(_facts(run)) for run in self.runs]
        return [(name, a, b) for (name, a), (_, b) in zip(*told, strict=True)]

    @property
    def differing(self) -> list[tuple[str, str, str]]:
        """What the runs were given, as far as it is not the same."""
        told = [list(_given(run)) for run in self.runs]
        pairs = [(name, a, b) for (name, a), (_, b) in zip(*told, strict=True)]
        one, two = (inputs or "not in its journal" for inputs in self.inputs)
        return [(name, a, b) for name, a, b in [*pairs, ("inputs", one, two)] if a != b]

    def diff(self) -> Diff:
        """From the winner of the first to that of the second."""
        one, two = (run.winner.candidate.text for run in self.runs)
        return Diff(between(one, two, *(f"{name} (best)" for name in self.names)))

    def __repr__(self) -> str:
        lines = [self.headline, "", *columns.text(("", *self.names), self.facts)]
        if self.differing:
            lines += ["", "given differently:", *columns.text(("", *self.names), self.differing)]
        if not self._related:
            return "\n".join(lines)
        if diff := self.diff():
            return "\n".join([*lines, "", "from one winner to the other:", str(diff)])
        return "\n".join([*lines, "", "both winners are the same program"])

    def fragment(self) -> Markup:
        """The same as static HTML."""
        parts = [element("h3", self.headline), columns.fragment(("", *self.names), self.facts)]
        if self.differing:
            parts.append(element("h4", "Given differently"))
            parts.append(columns.fragment(("", *self.names), self.differing))
        if not self._related:
            return element("div", *parts)
        if diff := self.diff():
            parts += [element("h4", "From one winner to the other"), diff.markup()]
        else:
            parts.append(element("p", "Both winners are the same program."))
        return element("div", *parts)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self.fragment()}


def _inputs(result: Result) -> str:
    """Shapes of the arrays and values of the scalars that the search was for."""
    if not isinstance(result.kernels, Kernels):
        return ""
    called = result.kernels.data
    shapes = [f"{name}[{', '.join(map(str, shape))}]" for name, shape in called.shapes.items()]
    scalars = [
        f"{name} = {called.values[name]}" for name in called.scalars if name in called.values
    ]
    return ", ".join([*shapes, *scalars])


def _facts(run: Summary) -> Iterator[tuple[str, str]]:
    low, high = run.interval
    moved = run.winner is not run.root or run.peer is not None
    span = f" ({ratio(low)} to {ratio(high)})" if moved else ", nothing significant"
    yield "speed-up", f"{ratio(run.speedup)}{span}"
    yield "input kernel", _time(run.root)
    yield "best", _time(run.winner)
    yield "verdict", str(run.winner.evaluation.verdict.outcome)
    yield "edits", run.recipe
    yield "limited by", _limit(run.winner)
    yield "findings", _findings(run.winner)
    counts = ", ".join(f"{number} {name}" for name, number in run.verdicts.items())
    yield "evaluations", f"{len(run.trajectory.steps)} ({counts})"
    yield "ended", run.trajectory.stopped


def _given(run: Summary) -> Iterator[tuple[str, str]]:
    yield "kernel", run.task
    yield "program", f"digest {run.root.candidate.digest}"
    yield "device", run.device
    yield "objective", run.trajectory.objective
    yield "exact", "every bit kept" if run.exact else "within the tolerance"
    yield "model", run.model
    yield "checked by", run.oracle
    yield "launch", run.launch


def _time(step: Step) -> str:
    found = step.evaluation.measurement
    return f"{seconds(found.seconds)} {found.source} on {found.chip}" if found else "no time"


def _limit(step: Step) -> str:
    found, roofline = step.evaluation.measurement, step.evaluation.roofline
    if found is None or not found.bounds:
        return "-"
    first = found.bounds[0]
    return f"{first.resource}, {seconds(first.seconds)}" + (f" ({roofline})" if roofline else "")


def _findings(step: Step) -> str:
    return ", ".join(finding.tool for finding in step.evaluation.findings) or "none"
