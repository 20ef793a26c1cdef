"""The levels of measurement beside the durations, each by its own means, asked once for a batch.

Static: the machine code, through nvdisasm. Energy and clocks: NVML, on request. Counters: ncu in a
child process. An emulated device gives its own counts instead. A level that does not
answer leaves its reason in the measurement, and the others go on.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from optiml_magic.devices.base import Case, Job
from optiml_magic.model.build import Build
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.measurement import Measurement, Missing
from optiml_magic.profilers.code import NO_NVDISASM, Disassemble, code_metrics
from optiml_magic.profilers.energy import EnergyProfiler
from optiml_magic.profilers.ncu import Counted, NcuCounters, Refused
from optiml_magic.profilers.ncu_request import Depth

_EMULATED = (
    Missing("counters", "an emulated device has no hardware counters; its own counts are shown"),
    Missing("energy", "an emulated device draws no power"),
)
_NOT_EMULATED = Missing("emulated", "the card runs the machine code itself; nothing is emulated")
_OUT_OF_REACH = Missing("counters", "too slow to build on, so ncu did not profile it")
_UNREAD = Missing("code__instructions", "too slow to build on, so its code was not read")
_NOT_ASKED = Missing("energy", "not requested; pass --energy")

_PATCHED = 200.0  # times slower, taken for what a run takes where ncu counts by line; ours
_SLOW = 2e-3  # seconds of a kernel that may do so much that ncu is not done with it in time; ours
_READERS = 4  # of machine code, beside ncu; ours
_WARM = 2  # processes of ncu that start for what comes next; ours


@dataclass(frozen=True)
class Measured:
    """One run with what is known of it so far."""

    build: Build
    job: Job
    measurement: Measurement


class Levels:
    """Completes measurements. ``notes`` says of a level that refused why, once.

    ``depth`` is that of the one program which is looked at closely, the input kernel mostly; others
    are counted briefly, since a batch should not take longer than all the rest of its evaluation.
    """

    def __init__(
        self,
        *,
        emulated: bool,
        depth: Depth = "lines",
        counters: NcuCounters | None = None,
        disassemble: Disassemble | None = None,
        energy: EnergyProfiler | None = None,
        added: Callable[[Measured], Measurement] = lambda run: run.measurement,
    ) -> None:
        self._emulated = emulated
        self._depth: Depth = depth
        self._counters = counters
        self._disassemble = disassemble
        self._energy = energy
        self._added = added  # by profilers of other packages
        self._refused: dict[str, None] = {}
        self._reading = ThreadPoolExecutor(_READERS, thread_name_prefix="optiml-code")

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._refused)

    def put(self, cases: Sequence[Case]) -> None:
        """The inputs that are counted on."""
        if self._counters is not None:
            self._counters.put(cases)

    def affords(self, seconds: float) -> bool:
        """Whether ncu would be done in time with a close look at a run of so many seconds."""
        counters = self._counters
        return counters is None or _PATCHED * seconds <= counters.by_line_seconds

    def warm(self, *, closely: bool, also: Sequence[str] = ()) -> None:
        """What comes next will be completed, and looked at ``closely``."""
        if self._counters is not None:
            depth, count = (self._depth, 1) if closely else ("brief", _WARM)
            self._counters.warm(depth=depth, also=also, count=count)

    def close(self) -> None:
        """End what waits."""
        self._reading.shutdown(cancel_futures=True)
        if self._counters is not None:
            self._counters.close()

    def begin(
        self,
        evaluations: Sequence[Evaluation],
        runs: Mapping[int, tuple[Build, Job]],
        *,
        counted: Collection[int],
        closely: bool = False,
        also: Sequence[str] = (),
    ) -> Callable[[], list[Evaluation]]:
        """Count now; the result has the evaluations, the measurements of ``runs`` completed.

        ``runs`` are by number. ncu is asked of those that are to be ``counted``, and looks
        ``closely`` or briefly; ``also`` are metrics that every one of them is counted by, however
        briefly. What it takes to measure energy, which is most of an evaluation, is in their
        ``seconds_spent``.
        """
        measured = {e.candidate: e.measurement for e in evaluations}
        known = {n: Measured(*runs[n], m) for n, m in measured.items() if n in runs and m}
        depth: Depth = self._depth if closely else "brief"
        these = [number in counted for number in known]
        pending = self._begun(list(known.values()), depth, also, these)

        def completed() -> list[Evaluation]:
            found = dict(zip(known, pending(), strict=True))
            drawing = self._energy.seconds if self._energy is not None else 0.0
            return [
                replace(
                    e,
                    measurement=found[e.candidate],
                    seconds_spent=e.seconds_spent + drawing,
                )
                if e.candidate in found
                else e
                for e in evaluations
            ]

        return completed

    def complete(
        self,
        runs: Sequence[Measured],
        *,
        depth: Depth | None = None,
        also: Sequence[str] = (),
    ) -> list[Measurement]:
        """Each measurement with the metrics of every level that answers, the best sources first.

        Without a ``depth`` as closely as the input kernel.
        """
        return self._begun(runs, depth or self._depth, also, [True] * len(runs))()

    def _begun(
        self,
        runs: Sequence[Measured],
        depth: Depth,
        also: Sequence[str],
        counted: Sequence[bool],
    ) -> Callable[[], list[Measurement]]:
        reading = [
            self._reading.submit(self._with_code, run, wanted=one or self._reads(run.measurement))
            for run, one in zip(runs, counted, strict=True)
        ]
        near = [(run.build, run.job) for run, one in zip(runs, counted, strict=True) if one]
        counting: Callable[[], tuple[Counted, ...] | Refused] = tuple
        if self._counters is not None and near:
            slow = max(run.measurement.seconds for run in runs) > _SLOW
            counting = self._counters.begin(near, depth=depth, also=also, slow=slow)

        def completed() -> list[Measurement]:
            found = [one.result() for one in reading]
            if self._emulated:
                found = [replace(m, missing=(*m.missing, *_EMULATED)) for m in found]
            else:
                found = [self._with_energy(run, m) for run, m in zip(runs, found, strict=True)]
                found = [replace(m, missing=(*m.missing, _NOT_EMULATED)) for m in found]
                if self._counters is not None:
                    found = self._with_counters(found, counted, counting())
            return [
                self._added(replace(run, measurement=m)) for run, m in zip(runs, found, strict=True)
            ]

        return completed

    def _reads(self, measured: Measurement) -> bool:
        """Whether the code of one that ncu is not asked of is read: there is nothing else."""
        return self._emulated or not self.affords(measured.seconds)

    def _with_code(self, run: Measured, *, wanted: bool) -> Measurement:
        measured = run.measurement
        if not wanted:
            return replace(measured, missing=(*measured.missing, _UNREAD))
        if self._disassemble is None or not run.build.cubin:
            return measured
        code = self._disassemble(run.build.cubin)
        if code is None:
            return replace(measured, missing=(*measured.missing, NO_NVDISASM))
        return replace(measured, metrics=(*measured.metrics, *code_metrics(code, run.job.plan)))

    def _with_energy(self, run: Measured, measured: Measurement) -> Measurement:
        if self._energy is None:
            return replace(measured, missing=(*measured.missing, _NOT_ASKED))
        found = self._energy.measure(run.build, run.job)
        if isinstance(found, Missing):
            self._refused[f"no energy: {found.reason}"] = None
            return replace(measured, missing=(*measured.missing, found))
        return replace(measured, metrics=(*measured.metrics, *found))

    def _with_counters(
        self,
        found: Sequence[Measurement],
        counted: Sequence[bool],
        answer: tuple[Counted, ...] | Refused,
    ) -> list[Measurement]:
        if isinstance(answer, Refused):
            self._refused[f"no hardware counters: {answer.reason}"] = None
            refused = Missing("counters", answer.reason)
            return [replace(m, missing=(*m.missing, refused)) for m in found]
        for one in answer:
            lost = (m.reason for m in one.missing if m.name == "lines")
            self._refused.update(dict.fromkeys(lost))
        those = iter(answer)
        return [
            _with(m, next(those)) if one else replace(m, missing=(*m.missing, self._unasked(m)))
            for m, one in zip(found, counted, strict=True)
        ]

    def _unasked(self, measured: Measurement) -> Missing:
        if self.affords(measured.seconds):
            return _OUT_OF_REACH
        takes = f"a run takes {measured.seconds:.2g} s, and ncu repeats it"
        return Missing("counters", f"{takes}: that would take most of the seconds")


def _with(measured: Measurement, counted: Counted) -> Measurement:
    return replace(
        measured,
        metrics=(*counted.metrics, *measured.metrics),
        kernels=counted.kernels or measured.kernels,
        rules=counted.rules,
        missing=(*measured.missing, *counted.missing),
    )
