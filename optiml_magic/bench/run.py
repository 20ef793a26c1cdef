"""The suite run: each task searched, timed beside its peers, and kept before the next begins."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optiml_magic.bench.beside import Beside, beside
from optiml_magic.bench.entry import Entry, Size
from optiml_magic.bench.machine import hardware, versions
from optiml_magic.bench.row import BEST, INPUT, Row, Setup, Written, append, read
from optiml_magic.devices.choice import Choice, choose
from optiml_magic.devices.functions import line_of
from optiml_magic.errors import MachineError, OptimlError, UsageError
from optiml_magic.from_reference import with_kernel
from optiml_magic.optimize import optimize
from optiml_magic.profilers.roofs import published
from optiml_magic.reports.summary import Summary, step_speedup
from optiml_magic.settings import Settings

FILE = "suite.jsonl"
_COUNTED = 20_000_000  # instructions of a launch that an emulated device counts whole; ours
_BESIDE = "timing in this process"


@dataclass(frozen=True)
class Suite:
    """What is run where: ``entries`` at a ``size`` into ``folder``, with or without peers.

    By ``origin`` a search begins from the task's kernel, or from what its reference says.
    """

    entries: Sequence[Entry]
    size: Size
    settings: Settings
    folder: Path
    peers: bool
    command: str
    origin: Written = "kernel"

    def run(self, told: Callable[[Row], None] = lambda _: None) -> list[Row]:
        """Every row of the folder, those of earlier runs included, in the order of the suite.

        A task that has a row with figures is not run again, unless it was opened since. Raises
        UsageError where the folder holds rows that were made otherwise, MachineError where the
        card can be used no more in this process.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / FILE
        setup = self._setup(choice := choose(self.settings.device))
        done = read(file)
        if any(row.setup.key != setup.key for row in done):
            raise UsageError(
                f"{file} has rows of another device, size, budget, limit, origin or policy",
                fix="name another folder",
            )
        # What was measured while a task was held out is not a figure of an open one.
        failed = {(row.task, row.part): bool(row.error) for row in done}
        left = [entry for entry in self.entries if failed.get((entry.name, entry.part), True)]
        # One that fails each time must not keep the others from their turn.
        for entry in sorted(left, key=lambda e: (e.name, e.part) in failed):
            row = self._row(entry, setup, choice)
            append(file, row)
            told(row)
            if problem := row.failed.get(_BESIDE):
                raise MachineError(
                    f"{entry.name}: {problem}",
                    fix="run the command again: it goes on with the next task",
                )
        names = [entry.name for entry in self.entries]
        found = {row.task: row for row in read(file)}
        return [found[name] for name in names if name in found]

    def _setup(self, choice: Choice) -> Setup:
        return Setup(
            choice.name, choice.chip.name, self.size, self.settings.budget, self.settings.seconds,
            hardware(choice), versions(), self.command, time.strftime("%Y-%m-%d"), self.origin,
            self.settings.policy,
        )  # fmt: skip

    def _row(self, entry: Entry, setup: Setup, choice: Choice) -> Row:
        sizes = dict(entry.sizes(self.size))
        row = Row(entry.name, entry.family, entry.part, setup, sizes)
        try:
            task = entry.task(self.size)
            made = with_kernel(task) if self.origin == "reference" else task
            result = optimize(made, self._own(choice))
        except OptimlError as error:
            return replace(row, error=str(error).splitlines()[0])
        summary = result.summary
        verdict = summary.root.evaluation.verdict
        if not verdict.passed or summary.root.evaluation.measurement is None:
            return replace(row, error=f"the input kernel: {verdict.outcome}, {verdict.summary}")
        timed = Beside()
        if not choice.is_emulated:
            index = int(choice.name.partition(":")[2])
            try:
                own = self.origin == "reference"
                timed = beside(
                    entry, result, sizes, index, with_peers=self.peers, with_reference=own
                )
            except Exception as problem:  # noqa: BLE001  # of CuPy, torch or the driver
                # The search was timed in processes of its own: what a peer broke is not in it.
                timed = Beside(failed={_BESIDE: line_of(problem)})
        return _filled(row, entry, summary, timed, choice)

    def _own(self, choice: Choice) -> Settings:
        """No model, no experience, not even of the task before; the journals lie in the folder.

        An emulated device counts a sample of the blocks of a large grid.
        """
        counted = self.settings.count_instructions
        caches = self.settings.cache or str(self.settings.home)
        return replace(
            self.settings, device=choice.name, llm="none", experience="none", home=self.folder,
            cache=caches, count_instructions=min(_COUNTED, counted),
        )  # fmt: skip


def _filled(row: Row, entry: Entry, summary: Summary, timed: Beside, choice: Choice) -> Row:
    before, after = summary.root.evaluation, summary.winner.evaluation
    assert before.measurement is not None
    assert after.measurement is not None
    roofs = before.standing.roofs if before.standing else published(choice.chip)
    terms = entry.floor(**row.sizes).terms(choice.chip, roofs)
    return replace(
        row,
        source=before.measurement.source,
        seconds=_seconds(before.measurement.seconds, after.measurement.seconds, timed.samples),
        samples=timed.samples,
        how=timed.how,
        errors=timed.errors,
        failed=timed.failed,
        against=timed.against,
        floor=max(terms.values()),
        floor_terms=terms,
        claimed=summary.speedup,
        interval=summary.interval,
        progress=_progress(summary),
        recipe=summary.recipe,
        program=summary.winner.candidate.text,
        refused=tuple(
            dict.fromkeys(
                f"{refusal.rule}: {refusal.reason}"
                for refusal in (*summary.root.refused, *summary.winner.refused)
            )
        ),
        outcomes=summary.verdicts,
        stopped=summary.trajectory.stopped,
        wall=summary.wall_seconds,
        notes=summary.notes,
    )


def _seconds(
    before: float, after: float, samples: Mapping[str, Sequence[float]]
) -> dict[str, float]:
    """Medians of what was timed in turn; the search's own times where ours were not."""
    if INPUT in samples and BEST in samples:
        return {name: statistics.median(mine) for name, mine in samples.items()}
    return {INPUT: before, BEST: after}


def _progress(summary: Summary) -> tuple[float, ...]:
    """The best speed-up after each evaluation, of those that were verified."""
    gains: list[Any] = [
        (step_speedup(summary, step) or 1.0) if step.evaluation.verdict.passed else 1.0
        for step in summary.trajectory.steps[1:]
    ]
    return tuple(itertools.accumulate(gains, max, initial=1.0))[1:]
