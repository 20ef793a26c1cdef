"""The suite run: each task searched, timed beside its peers, and kept before the next begins."""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from optiml_magic.bench.beside import Beside, beside
from optiml_magic.bench.entry import Entry, Size
from optiml_magic.bench.machine import hardware, versions
from optiml_magic.bench.row import BEST, INPUT, Row, Setup, Written, append, read
from optiml_magic.calling import Kernels
from optiml_magic.devices.choice import Choice, choose
from optiml_magic.devices.functions import line_of
from optiml_magic.errors import MachineError, OptimlError, UsageError
from optiml_magic.from_reference import with_kernel
from optiml_magic.model.task import Task
from optiml_magic.optimize import optimize, prepared
from optiml_magic.profilers.roofs import published
from optiml_magic.reports.summary import Summary, step_speedup
from optiml_magic.result import Kernel
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
        done = self._done(setup := self._setup(choice := choose(self.settings.device)))
        # What was measured while a task was held out is not a figure of an open one.
        failed = {(row.task, row.part): bool(row.error) for row in done}
        left = [entry for entry in self.entries if failed.get((entry.name, entry.part), True)]
        # One that fails each time must not keep the others from their turn.
        for entry in sorted(left, key=lambda e: (e.name, e.part) in failed):
            self._kept(self._row(entry, setup, choice), told)
        return self._in_order()

    def retime(self, told: Callable[[Row], None] = lambda _: None) -> list[Row]:
        """The same rows, their programs timed again beside the peers of today, without a search.

        A row that this very command has timed today is left alone, so a run that was stopped goes
        on. Raises what ``run`` raises, and UsageError without a card.
        """
        choice = choose(self.settings.device)
        if choice.is_emulated:
            fix = "name a card: --device cuda:0"
            raise UsageError(f"nothing is timed on {choice.name}", fix=fix)
        setup = self._setup(choice)
        rows = {row.task: row for row in self._done(setup) if not row.error}
        for entry in self.entries:
            row = rows.get(entry.name)
            if row is None or (row.timed and row.timed.again == setup.again):
                continue
            task = self._task(entry)
            kernels = Kernels.of(prepared(task, self._own(choice)), self._own(choice))
            timed = self._timed(entry, kernels(task.text), kernels(row.program), row.sizes, choice)
            search = row.seconds[INPUT], row.seconds[BEST]
            self._kept(replace(row, timed=setup, **_timings(*search, timed)), told)
        return self._in_order()

    def _done(self, setup: Setup) -> list[Row]:
        """What the folder holds. Raises UsageError where that was made otherwise."""
        self.folder.mkdir(parents=True, exist_ok=True)
        done = read(self._file)
        if any(row.setup.key != setup.key for row in done):
            raise UsageError(
                f"{self._file} has rows of another device, size, budget, limit, origin or policy",
                fix="name another folder",
            )
        return done

    def _kept(self, row: Row, told: Callable[[Row], None]) -> None:
        append(self._file, row)
        told(row)
        if problem := row.failed.get(_BESIDE):
            raise MachineError(
                f"{row.task}: {problem}", fix="run the command again: it goes on with the next task"
            )

    def _in_order(self) -> list[Row]:
        found = {row.task: row for row in read(self._file)}
        return [found[entry.name] for entry in self.entries if entry.name in found]

    @property
    def _file(self) -> Path:
        return self.folder / FILE

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
            result = optimize(self._task(entry), self._own(choice))
        except OptimlError as error:
            return replace(row, error=str(error).splitlines()[0])
        summary = result.summary
        verdict = summary.root.evaluation.verdict
        if not verdict.passed or summary.root.evaluation.measurement is None:
            return replace(row, error=f"the input kernel: {verdict.outcome}, {verdict.summary}")
        timed = Beside()
        if not choice.is_emulated:
            timed = self._timed(entry, result.original, result.best, sizes, choice)
        return _filled(row, entry, summary, timed, choice)

    def _task(self, entry: Entry) -> Task:
        task = entry.task(self.size)
        return with_kernel(task) if self.origin == "reference" else task

    def _timed(
        self, entry: Entry, original: Kernel, best: Kernel, sizes: dict[str, int], choice: Choice
    ) -> Beside:
        index, own = int(choice.name.partition(":")[2]), self.origin == "reference"
        try:
            return beside(
                entry, original, best, sizes, index, with_peers=self.peers, with_reference=own
            )
        except Exception as problem:  # noqa: BLE001  # of CuPy, torch or the driver
            # The search was timed in processes of its own: what a peer broke is not in it.
            return Beside(failed={_BESIDE: line_of(problem)})

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
        **_timings(before.measurement.seconds, after.measurement.seconds, timed),
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
        stages=dict(summary.timings),
        notes=summary.notes,
    )


def _timings(before: float, after: float, timed: Beside) -> dict[str, Any]:
    """Medians of what was timed in turn; the times ``before`` and ``after`` where ours were not."""
    seconds = {INPUT: before, BEST: after}
    if seconds.keys() <= timed.samples.keys():
        seconds = {name: statistics.median(mine) for name, mine in timed.samples.items()}
    return {
        "seconds": seconds,
        "samples": timed.samples,
        "how": timed.how,
        "errors": timed.errors,
        "failed": timed.failed,
        "against": timed.against,
    }


def _progress(summary: Summary) -> tuple[float, ...]:
    """The best speed-up after each evaluation, of those that were verified."""
    gains: list[Any] = [
        (step_speedup(summary, step) or 1.0) if step.evaluation.verdict.passed else 1.0
        for step in summary.trajectory.steps[1:]
    ]
    return tuple(itertools.accumulate(gains, max, initial=1.0))[1:]
