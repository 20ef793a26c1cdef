"""ncu around a device host, which can be started before it is needed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from pathlib import Path

from optiml_magic.devices.base import Case, Job
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.devices.turns import turn
from optiml_magic.errors import MachineError
from optiml_magic.model.build import Build
from optiml_magic.model.verdict import Outcome

SECONDS = 180.0  # of one request to a host that ncu wraps
Run = tuple[Case, Build, Job]
_LETTING_GO = 2.0  # seconds for a thread whose host has ended; ours


class NcuProcess:
    """One process of ncu around a device host, with the files that it writes.

    ``primed`` launches come first in its report, and are nobody's. ``late`` says that a run took
    too long, whereupon all of it was ended.
    """

    def __init__(self, device: str, tool: str, arguments: Sequence[str]) -> None:
        self.arguments = tuple(arguments)
        self.primed = 0
        self.late = False
        self._device = device
        self._priming: Future[str] | None = None
        self._folder = tempfile.TemporaryDirectory(prefix="optiml-ncu-")
        self.report = Path(self._folder.name, "report.ncu-rep")
        self.log = Path(self._folder.name, "ncu.log")
        out = str(self.report.with_suffix(""))
        prefix = (
            tool, "--profile-from-start", "off", "--clock-control", "none", *arguments,
            "--log-file", str(self.log), "--force-overwrite", "-o", out,
        )  # fmt: skip
        self.host = HostedDevice(device, seconds=SECONDS, prefix=prefix)

    def start(self) -> None:
        """Let it start beside whatever is done now: that takes longer than a batch of counts."""
        self.host.start()

    def prime(self, threads: ThreadPoolExecutor, known: Callable[[], Run | None]) -> None:
        """Count a known run once it has started: the first costs as much as three more.

        That is done in a thread, while nobody times on the card; nothing where there is no run.
        """

        def primed() -> str:
            run = known()
            if run is None:
                return ""
            case, build, job = run
            self.primed = len(job.plan.launches)
            try:
                self.host.put(case)
                with turn(self._device, shared=True):
                    execution = self.host.execute(build, replace(job, count=True))
            except MachineError as lost:
                return lost.message
            return execution.fault.message if execution.fault is not None else ""

        self._priming = threads.submit(primed)

    def run(
        self, cases: Sequence[Case], runs: Sequence[tuple[Build, Job]], seconds: float = SECONDS
    ) -> str:
        """Count them, within so many seconds each; why that failed, or nothing."""
        self.host.limit(seconds)
        failure = self._priming.result() if self._priming is not None else ""
        if failure:
            return failure
        try:
            for case in cases:
                self.host.put(case)
            for build, job in runs:
                execution = self.host.execute(build, replace(job, count=True))
                if execution.fault is not None:
                    self.late = execution.fault.outcome is Outcome.TIMEOUT
                    return execution.fault.message
        except MachineError as lost:  # ncu went before the host was there
            return lost.message
        return ""

    def close(self, *, seconds: float = 60.0) -> None:
        """End it, by force after so many seconds, and remove its files."""
        self.host.close(seconds=seconds)
        if self._priming is not None:
            wait([self._priming], _LETTING_GO)
        self._folder.cleanup()
