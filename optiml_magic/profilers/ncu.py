"""Nsight Compute over a batch of builds: one ncu process around one device host.

Starting ncu and Python dominates, so a batch costs little more than one. The host answers the same
frames as ever; ncu's own words go to a log file, since they would stand between the frames. Kernels
run between profiler start and stop, in the order of the jobs, so results map by order, and each by
its name as a check. ncu's durations are never used: it replays kernels and changes what they meet.
"""

from __future__ import annotations

import re
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from optiml_magic.devices.base import Case, Job
from optiml_magic.model.build import Build
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.measurement import Metric, Missing, RuleResult
from optiml_magic.model.vocabulary import (
    VOCABULARY,
    brief_counters,
    default_counters,
    line_counters,
)
from optiml_magic.profilers import lines
from optiml_magic.profilers.code import Code, Disassemble
from optiml_magic.profilers.ncu_process import SECONDS, NcuProcess, Run
from optiml_magic.profilers.ncu_request import BY_LINE, Asked, Depth, Manners, of_ncu
from optiml_magic.profilers.report import (
    LaunchReport,
    Unreadable,
    combined,
    from_csv,
    load,
)

_REFUSED = re.compile(r"(?:Failed to find metric|[Uu]nknown metric)[:\s]+([\w.]+)")
_ENDING = 2  # processes of ncu that write and are read at a time; ours
_SOON = 3.0  # seconds of a batch, below which one of its runs is what others begin with; ours


@dataclass(frozen=True)
class Refused:
    """Why ncu gave no counters, in a sentence, with the remedy."""

    reason: str


@dataclass(frozen=True)
class Counted:
    """What ncu counted of one run. ``missing`` has what was asked for and did not come."""

    metrics: tuple[Metric, ...]
    kernels: tuple[KernelCounters, ...]
    rules: tuple[RuleResult, ...]
    missing: tuple[Missing, ...]


_MANNERS: dict[str, Manners] = {}


@dataclass(frozen=True)
class _Ran:
    """A process of ncu that ran what it should, or why not, and what it was asked for."""

    process: NcuProcess
    failure: str
    asked: Asked


class NcuCounters:
    """Counts builds on one device; ``cases`` are put on the host that ncu wraps.

    Looked at closely, ``metrics`` are collected of a launch and ``by_line`` of its machine
    instructions, else ``brief`` alone. ``disassemble`` places the instructions in the text. ncu
    counts by instruction in code that it adds to the kernel, a hundred times slower and more: where
    a run that is slow by itself takes longer than ``by_line_seconds`` so, the figures of the launch
    alone are asked for.
    """

    def __init__(
        self,
        device: str,
        cases: Sequence[Case] = (),
        *,
        metrics: Sequence[str] = default_counters(),
        by_line: Sequence[str] = line_counters(),
        brief: Sequence[str] = brief_counters(),
        disassemble: Disassemble | None = None,
        by_line_seconds: float = SECONDS,
    ) -> None:
        self._device = device
        self.by_line_seconds = by_line_seconds
        self._cases: dict[str, Case] = {}
        self.put(cases)
        self._metrics = tuple(metrics)
        self._lines = tuple(by_line)
        self._brief = tuple(brief)
        self._disassemble = disassemble
        self._manners = _MANNERS.setdefault(device, Manners())
        self._waiting: list[NcuProcess] = []
        self._known: Callable[[], Run | None] = lambda: None  # a run that ends well
        self._threads = ThreadPoolExecutor(_ENDING, thread_name_prefix="optiml-ncu")
        self._priming = ThreadPoolExecutor(thread_name_prefix="optiml-ncu-first")

    def put(self, cases: Sequence[Case]) -> None:
        """Inputs that jobs may name from now on."""
        self._cases |= {case.key: case.without_answers() for case in cases}

    def take_over(self, others: NcuCounters) -> None:
        """What waits there waits here, and counts ahead what is known here."""
        self._waiting, others._waiting = [*self._waiting, *others._waiting], []
        for process in self._waiting:
            process.prime(self._priming, self._known)

    def until_known(self, run: Callable[[], Run | None]) -> None:
        """What a process that waits counts ahead, until a run of the task is known."""
        self._known = run

    def warm(self, *, depth: Depth = "brief", also: Sequence[str] = (), count: int = 1) -> None:
        """Let ncu start now, ``count`` times: what is counted next, at that depth, need not wait.

        A start takes longer than a small batch, so one alone is not there in time.
        """
        tool = shutil.which("ncu")
        if tool is None:
            return
        asked = self._asked(depth, also)
        wanted = {tuple(asked.arguments): (asked, count)}
        if depth == "rules":
            wanted[tuple(asked.with_rules.arguments)] = asked.with_rules, 1
        if any(process.arguments not in wanted for process in self._waiting):
            self.close()
        for arguments, (kind, number) in wanted.items():
            there = sum(process.arguments == arguments for process in self._waiting)
            for _ in range(number - there):
                self._waiting.append(self._ahead(tool, kind))

    def _ahead(self, tool: str, asked: Asked) -> NcuProcess:
        """One that starts now, and counts what is known already."""
        process = NcuProcess(self._device, tool, asked.arguments)
        process.start()
        process.prime(self._priming, self._known)
        return process

    def close(self) -> None:
        """End what waits; it has nothing to write."""
        while self._waiting:
            self._waiting.pop().close(seconds=0.0)

    def count(
        self,
        runs: Sequence[tuple[Build, Job]],
        *,
        depth: Depth = "brief",
        also: Sequence[str] = (),
    ) -> tuple[Counted, ...] | Refused:
        """What was counted of each run, its launches added up as the vocabulary says.

        Of ``also``, metrics besides, those are asked for that the vocabulary knows as ncu's.
        """
        return self.begin(runs, depth=depth, also=also)()

    def begin(
        self,
        runs: Sequence[tuple[Build, Job]],
        *,
        depth: Depth = "brief",
        also: Sequence[str] = (),
        slow: bool = False,
    ) -> Callable[[], tuple[Counted, ...] | Refused]:
        """Run them now; the result has what ``count`` returns.

        ncu writes its report as it ends, which takes longer than the runs and needs no card: that
        and reading it is done in a thread meanwhile. ``slow`` says that figures by line may be
        given up: the process that would be asked then starts as well.
        """
        tool = shutil.which("ncu")
        if tool is None:
            return lambda: Refused("ncu is not on the PATH; install Nsight Compute")
        asked = self._asked(depth, also)
        if slow and asked.by_line:
            self._waiting.append(self._ahead(tool, asked.without_lines(self.by_line_seconds)))
        counted = self._begun(tool, runs, asked, slow)
        if depth != "rules":
            return counted
        ruled = self._begun(tool, runs, asked.with_rules, slow)
        return lambda: _with_rules(counted(), ruled())

    def _begun(
        self, tool: str, runs: Sequence[tuple[Build, Job]], asked: Asked, slow: bool
    ) -> Callable[[], tuple[Counted, ...] | Refused]:
        ran = self._run(tool, runs, asked, slow)
        ending = self._threads.submit(self._ended, ran, tool, runs)
        return lambda: ending.result() or self._counted(tool, runs, asked)

    def _asked(self, depth: Depth, also: Sequence[str]) -> Asked:
        close = depth != "brief"
        names = (*(self._metrics if close else self._brief), *(n for n in also if n in VOCABULARY))
        metrics = tuple(dict.fromkeys(filter(of_ncu, names)))
        return Asked(metrics, self._lines if close else (), self._manners)

    def _counted(
        self, tool: str, runs: Sequence[tuple[Build, Job]], asked: Asked
    ) -> tuple[Counted, ...] | Refused:
        while True:
            found = self._ended(self._run(tool, runs, asked), tool, runs)
            if found is not None:
                return found

    def _ended(
        self, ran: _Ran, tool: str, runs: Sequence[tuple[Build, Job]]
    ) -> tuple[Counted, ...] | Refused | None:
        """What the process wrote at its end; None where it should be asked in another way."""
        process = ran.process
        try:
            process.host.close(seconds=60.0)
            if not ran.failure and process.report.exists():
                return self._read(tool, process, runs, ran.asked)
            if self._learned(process.log, ran.asked):
                return None
            return Refused(advice(ran.failure, process.log))
        finally:
            process.close()

    def _process(self, tool: str, asked: Asked) -> NcuProcess:
        """The one that waits longest, if it was started for just this; a new one else."""
        for process in self._waiting:
            if process.arguments == tuple(asked.arguments):
                self._waiting.remove(process)
                return process
        self.close()
        return NcuProcess(self._device, tool, asked.arguments)

    def _run(
        self, tool: str, runs: Sequence[tuple[Build, Job]], asked: Asked, slow: bool = False
    ) -> _Ran:
        """All of them in one process, without figures by line where these take too long."""
        process, began = self._process(tool, asked), time.monotonic()
        cases = [self._cases[key] for key in dict.fromkeys(job.case for _, job in runs)]
        limit = self.by_line_seconds if slow and asked.patches else SECONDS
        failure = process.run(cases, runs, limit)
        if process.late and asked.by_line:
            process.close(seconds=0.0)
            return self._run(tool, runs, asked.without_lines(self.by_line_seconds))
        if not failure and time.monotonic() - began < _SOON:
            build, job = runs[-1]
            self._known = partial(_run_of, self._cases[job.case], build, job)
        return _Ran(process, failure, asked)

    def _learned(self, log: Path, asked: Asked) -> bool:
        """Whether ncu refused metrics by name, or might give those by line as a section only."""
        said = log.read_text(errors="replace") if log.exists() else ""
        refused = set(_REFUSED.findall(said)) & set(asked.collected)
        by_section = not refused and asked.by_line and "==ERROR==" in said
        if by_section and not self._manners.by_section and "NVGPUCTRPERM" not in said:
            self._manners.by_section = True
            return True
        self._manners.unknown |= refused
        return bool(refused)

    def _read(
        self, tool: str, process: NcuProcess, runs: Sequence[tuple[Build, Job]], asked: Asked
    ) -> tuple[Counted, ...] | Refused:
        launches = load(process.report, tool, asked.collected)
        lost = asked.lost
        if isinstance(launches, Unreadable):
            reason = f"no figures by line, and no rules: {launches.reason}"
            lost = (*lost, Missing(BY_LINE, reason))
            launches = from_csv(tool, process.report, asked.collected)
        launches = launches[process.primed :]
        wanted = sum(len(job.plan.launches) for _, job in runs)
        if len(launches) != wanted:
            return Refused(f"ncu saw {len(launches)} launches where {wanted} were made")
        found, at = [], 0
        for build, job in runs:
            mine = launches[at : at + len(job.plan.launches)]
            at += len(mine)
            for one, launch in zip(mine, job.plan.launches, strict=True):
                if not _is_of(one.kernel, launch.kernel, build):
                    return Refused(f"ncu's launch of {one.kernel} is not that of {launch.kernel}")
            found.append(self._of(build, mine, lost, asked))
        return tuple(found)

    def _of(
        self,
        build: Build,
        launches: Sequence[LaunchReport],
        lost: tuple[Missing, ...],
        asked: Asked,
    ) -> Counted:
        kernels = self._kernels(build, launches) if asked.by_line else ()
        metrics, missing = self._combined(launches, asked)
        if kernels:
            flops = sum(sum(k.flops.values()) for k in kernels)
            metrics.append(Metric("flop_count.sum", flops, "flop", "ncu", "machine code"))
        elif asked.by_line and not lost:
            lost = (Missing(BY_LINE, "ncu's report has no figures by instruction"),)
        rules = tuple(rule for launch in launches for rule in launch.rules)
        return Counted(tuple(metrics), kernels, rules, (*missing, *lost))

    def _kernels(
        self, build: Build, launches: Sequence[LaunchReport]
    ) -> tuple[KernelCounters, ...]:
        code: Code = (self._disassemble(build.cubin) if self._disassemble else None) or {}
        found = [
            lines.counters(one.kernel, one.instructions, code.get(one.kernel), build.ptx)
            for one in launches
        ]
        return tuple(k for k in found if k is not None) if None not in found else ()

    def _combined(
        self, launches: Sequence[LaunchReport], asked: Asked
    ) -> tuple[list[Metric], list[Missing]]:
        metrics, missing = [], []
        lost_lines = self._manners.unknown.intersection(asked.by_line)
        for name in dict.fromkeys((*asked.metrics, *sorted(lost_lines))):
            value = combined(name, launches)
            entry = VOCABULARY.get(name)
            if value is not None:
                metrics.append(Metric(name, value, entry.unit if entry else "", "ncu"))
            elif name in self._manners.unknown:
                missing.append(Missing(name, "this ncu does not know it on this chip"))
            else:
                missing.append(Missing(name, "ncu gave no value"))
        return metrics, missing


def _run_of(case: Case, build: Build, job: Job) -> Run:
    return case, build, job


def _with_rules(
    counted: tuple[Counted, ...] | Refused, ruled: tuple[Counted, ...] | Refused
) -> tuple[Counted, ...] | Refused:
    if isinstance(counted, Refused):
        return counted
    if isinstance(ruled, Refused):
        lost = Missing("rules", ruled.reason)
        return tuple(replace(one, missing=(*one.missing, lost)) for one in counted)
    return tuple(replace(one, rules=other.rules) for one, other in zip(counted, ruled, strict=True))


def _is_of(seen: str, lowered: str, build: Build) -> bool:
    """Whether ncu's launch is that kernel's; where it only knows demangled names, by its base."""
    base = next((n for n, low in build.names.items() if low == lowered), lowered)
    return seen == lowered or base.split("<")[0].split("::")[-1] in seen


def advice(failure: str, log: Path) -> str:
    """Why ncu gave no report, from its log, with the remedy where it is known."""
    said = log.read_text(errors="replace") if log.exists() else ""
    if "ERR_NVGPUCTRPERM" in said:
        return (
            "the driver keeps the counters from ordinary users (ERR_NVGPUCTRPERM): set "
            "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or run as root"
        )
    errors = [line for line in said.splitlines() if "==ERROR==" in line]
    return errors[0].replace("==ERROR==", "").strip() if errors else failure or "ncu gave no report"
