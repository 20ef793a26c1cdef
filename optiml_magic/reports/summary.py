"""What a run came to, as plain data that the text, HTML and JSON reports draw from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.measurement import speedup_interval
from optiml_magic.model.objective import joules_of, saving_interval
from optiml_magic.model.peer import Peer
from optiml_magic.model.refusal import Refusal, foremost
from optiml_magic.model.thought import BASELINES, Author, Fate
from optiml_magic.model.verdict import OutputCheck
from optiml_magic.reports.diff import unified


@dataclass(frozen=True)
class Summary:
    """One optimised task. ``device_reason`` and ``model`` say why these were taken."""

    task: str
    device: str
    device_reason: str
    oracle: str
    launch: str  # given or inferred
    notes: tuple[str, ...]
    trajectory: Trajectory
    wall_seconds: float
    journal: Path | None
    model: str = ""
    exact: bool = False  # whether every bit of the outputs had to stay
    timings: Mapping[str, float] = field(default_factory=dict)  # seconds by stage
    author: Author | None = None  # who wrote the input kernel, where the user did not
    peer: Peer | None = None  # the baseline of a kernel that there was none of before
    thoughts: tuple[Fate, ...] = ()  # that the search began from, the fastest first

    def __repr__(self) -> str:
        return f"<summary of {self.task}: {self.speedup:.3g}x {self.source}, {self.trajectory!r}>"

    @property
    def root(self) -> Step:
        """The input kernel."""
        return self.trajectory.root

    @property
    def start(self) -> str:
        """What the search began from, as a label."""
        return "input kernel" if self.author is None else self.baseline

    @property
    def baseline(self) -> str:
        """What the input kernel is called."""
        return BASELINES[self.author]

    @property
    def winner(self) -> Step:
        """The best step where its gain is significant, else the input kernel."""
        best = self.trajectory.best
        return best if self.trajectory.better(self.root, best) else self.root

    @property
    def run(self) -> str:
        """What ``optiml replay`` takes; empty where nothing keeps a journal."""
        if self.journal is None:
            return ""
        # Of OPTIML_HOME, or of a saved file, which keeps the name alone; else the path is given.
        known = self.journal.parent.name in ("runs", "")
        return self.journal.stem if known else str(self.journal)

    @property
    def recipe(self) -> str:
        """What came of which edits in order: of the input kernel's none is named but they."""
        steps = [s for s in self.trajectory.lineage(self.winner) if s is not self.root]
        return ", then ".join(s.candidate.proposal.title for s in steps) or self.baseline

    @property
    def speedup(self) -> float:
        """Of the winner over the peer, else over the input kernel.

        Over this 1.0 where nothing significant was found.
        """
        return self._gain[0]

    @property
    def interval(self) -> tuple[float, float]:
        """Within which the speed-up is claimed to lie."""
        return self._gain[1:]

    @property
    def _gain(self) -> tuple[float, float, float]:
        after = self.winner.evaluation.measurement
        if self.peer is None or after is None:
            return _gain(self.root, self.winner)
        found, error = self.peer.seconds / after.seconds, self.peer.ratio_error * after.ratio_error
        return found, found / error, found * error

    @property
    def saving(self) -> tuple[float, float, float] | None:
        """How many times fewer joules the winner needs, with its interval; None for speed."""
        before, after = self.root.evaluation.measurement, self.winner.evaluation.measurement
        if self.trajectory.objective == "speed" or before is None or after is None:
            return None
        return (1.0, 1.0, 1.0) if before is after else saving_interval(before, after)

    @property
    def only_where(self) -> tuple[str, ...]:
        """What the winner requires of the sizes, and the input kernel does not."""
        return self.winner.evaluation.only_where

    @property
    def source(self) -> str:
        """Where the seconds come from: ``estimated`` on an emulated device."""
        measurement = self.root.evaluation.measurement
        return measurement.source if measurement else "none"

    @property
    def verdicts(self) -> dict[str, int]:
        """How many steps ended how, most frequent first."""
        counts = Counter(_ending(step) for step in self.trajectory.steps)
        return dict(counts.most_common())

    @property
    def hypotheses(self) -> dict[str, int]:
        """How many edits kept their promise, most frequent first."""
        tests = (step.evaluation.test for step in self.trajectory.steps)
        counts = Counter(test.kept.replace("_", " ") for test in tests if test)
        return dict(counts.most_common())

    @property
    def not_tried(self) -> tuple[tuple[str, tuple[Refusal, ...]], ...]:
        """What the proposers would not do with the winner and the input kernel, and why.

        A reason that holds of both stands once; a program without one is left out. Of all others
        only what a rule broke on is told.
        """
        programs = [(self.baseline, self.root)]
        if self.winner is not self.root:
            programs.insert(0, ("the best program", self.winner))
        said: set[tuple[str, str]] = set()
        told = []
        for name, step in programs:
            new = [r for r in step.refused if (r.rule, r.reason) not in said]
            said |= {(r.rule, r.reason) for r in new}
            if new:
                told.append((name, foremost(new, step.evaluation.findings)))
        faults = [r for step in self.trajectory.steps for r in step.refused if r.fault]
        if more := [r for r in faults if (r.rule, r.reason) not in said]:
            told.append(("other programs", foremost(more)))
        return tuple(told)

    @property
    def arithmetic(self) -> tuple[str, ...]:
        """What arithmetic the edits from the input kernel to the winner change, as they say."""
        path = self.trajectory.lineage(self.winner)
        return tuple(dict.fromkeys(a for s in path for a in s.candidate.proposal.arithmetic))

    @property
    def worst_output(self) -> OutputCheck | None:
        """The winner's output whose error comes nearest to the allowed one; None without any."""
        checks = self.winner.evaluation.verdict.checks
        return max(checks, key=lambda c: c.error / c.rtol if c.rtol else c.error, default=None)

    def diff(self) -> str:
        """From the input kernel to the winner."""
        return unified(self.root.candidate.text, self.winner.candidate.text, name=self.task)


def _ending(step: Step) -> str:
    if step.evaluation.duplicate_of is not None:
        return "duplicate"
    return str(step.evaluation.verdict.outcome)


def drawn(summary: Summary) -> str:
    """Joules of a run before and after, where they were what the search was for."""
    before, after = (
        joules_of(step.evaluation.measurement) for step in (summary.root, summary.winner)
    )
    if summary.trajectory.objective == "speed" or before is None or after is None:
        return ""
    return f"{before:.3g} J a run before, {after:.3g} J after, of the whole card, nvml"


def _gain(root: Step, other: Step) -> tuple[float, float, float]:
    before, after = root.evaluation.measurement, other.evaluation.measurement
    if before is None or after is None or root is other:
        return 1.0, 1.0, 1.0
    return speedup_interval(before, after)


def changed_arithmetic(summary: Summary) -> str:
    """What the winner's edits change of the arithmetic, and how near its outputs are to wrong."""
    if summary.winner is summary.root:
        return ""
    changes = ", ".join(summary.arithmetic)
    told = f"changes {changes}" if changes else "no edit says that it changes any"
    if summary.exact:
        told = "every bit as the input kernel has it, as --exact asks"
    worst = summary.worst_output
    if worst is None:
        return told
    each = f"{worst.atol:.2g} allowed for each element" if worst.atol else "none allowed"
    allowed = f"{worst.rtol:.2g} allowed" if worst.rtol else each
    return f"{told}; largest error {worst.error:.2g}, of `{worst.name}`, {allowed}"


def promise(step: Step) -> tuple[str, str] | None:
    """What was expected of a step's edit and what came; None where nothing was."""
    hypothesis, test = step.candidate.proposal.hypothesis, step.evaluation.test
    return (str(hypothesis), str(test)) if hypothesis and test else None


def step_speedup(summary: Summary, step: Step) -> float | None:
    """Of a step over the input kernel; None where either has no time."""
    before, after = summary.root.evaluation.measurement, step.evaluation.measurement
    return before.seconds / after.seconds if before and after else None
