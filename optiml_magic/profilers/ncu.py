"""Nsight Compute over a batch of builds: one ncu process around one device host.

Starting ncu and Python dominates, so a batch costs little more than one. The host answers the same
frames as ever; ncu's own words go to a log file, since they would stand between the frames. Kernels
run between profiler start and stop, in the order of the jobs, so results map by order, and each by
its name as a check. ncu's durations are never used: it replays kernels and changes what they meet.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

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
from optiml_magic.profilers.ncu_process import NcuProcess
from optiml_magic.profilers.report import (
    LaunchReport,
    Unreadable,
    combined,
    from_csv,
    load,
    parts,
)

_GIVEN = ("launch__", "sm__maximum_warps_")  # in every report, and not to be asked for
_SECTION = ("--section", "SourceCounters")
_RULES = ("--set", "detailed")
_REFUSED = re.compile(r"(?:Failed to find metric|[Uu]nknown metric)[:\s]+([\w.]+)")
_BY_LINE = "lines"

# How much is asked of ncu, which replays a launch until it has it all: the brief metrics; all that
# tools read, and figures by line; these and NVIDIA's rules.
Depth = Literal["brief", "lines", "rules"]


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


@dataclass
class _Manners:
    """How the ncu here wants to be asked on a device; learned once a process."""

    unknown: set[str] = field(default_factory=set)  # metrics, on that chip
    by_section: bool = False  # the figures by instruction


_MANNERS: dict[str, _Manners] = {}


@dataclass(frozen=True)
class _Asked:
    """The metrics of a launch and of its instructions that one process of ncu is to collect."""

    metrics: tuple[str, ...]
    by_line: tuple[str, ...]
    manners: _Manners
    sections: tuple[str, ...] = ()

    @property
    def with_rules(self) -> _Asked:
        """NVIDIA's rules; with so many passes the L1's counters are off by 1 %, so apart."""
        return replace(self, by_line=(), sections=_RULES)

    @property
    def collected(self) -> list[str]:
        """What is read of a report; ratios follow from two others."""
        weights = [VOCABULARY[n].weight for n in self.metrics if n in VOCABULARY]
        names = dict.fromkeys((*self.metrics, *filter(_of_ncu, weights), *self.by_line))
        names.update(dict.fromkeys(part for n in self.metrics for part in parts(n)))
        return [n for n in names if n not in self.manners.unknown and not parts(n)]

    @property
    def arguments(self) -> list[str]:
        """Those of ncu's command line."""
        by_section = self.manners.by_section and bool(self.by_line)
        names = [n for n in self.collected if not n.startswith(_GIVEN)]
        if by_section:
            names = [n for n in names if n not in self.by_line]
        by_line = _SECTION if by_section else ()
        return ["--metrics", ",".join(names), *by_line, *self.sections]


class NcuCounters:
    """Counts builds on one device; ``cases`` are put on the host that ncu wraps.

    Looked at closely, ``metrics`` are collected of a launch and ``by_line`` of its machine
    instructions, else ``brief`` alone. ``disassemble`` places the instructions in the text.
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
    ) -> None:
        self._device = device
        self._cases: dict[str, Case] = {}
        self.put(cases)
        self._metrics = tuple(metrics)
        self._lines = tuple(by_line)
        self._brief = tuple(brief)
        self._disassemble = disassemble
        self._manners = _MANNERS.setdefault(device, _Manners())
        self._waiting: list[NcuProcess] = []
        self._known: tuple[Build, Job] | None = None  # a run that ended well
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="optiml-ncu")
        self._priming = ThreadPoolExecutor(thread_name_prefix="optiml-ncu-first")

    def put(self, cases: Sequence[Case]) -> None:
        """Inputs that jobs may name from now on."""
        self._cases |= {case.key: case.without_answers() for case in cases}

    def warm(self, *, depth: Depth = "brief", also: Sequence[str] = (), count: int = 1) -> None:
        """Let ncu start now, ``count`` times: what is counted next, at that depth, need not wait.

        A start takes longer than a small batch, so one alone is not there in time.
        """
        tool = shutil.which("ncu")
        if tool is None:
            return
        asked = self._asked(depth, also)
        kinds = {tuple(asked.arguments): count}
        if depth == "rules":
            kinds[tuple(asked.with_rules.arguments)] = 1
        if any(process.arguments not in kinds for process in self._waiting):
            self.close()
        for arguments, number in kinds.items():
            there = sum(process.arguments == arguments for process in self._waiting)
            for _ in range(number - there):
                self._waiting.append(self._ahead(tool, arguments))

    def _ahead(self, tool: str, arguments: Sequence[str]) -> NcuProcess:
        """One that starts now, and counts what is known already."""
        process = NcuProcess(self._device, tool, arguments)
        process.start()
        if self._known is not None:
            build, job = self._known
            process.prime(self._priming, self._cases[job.case], build, job)
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
    ) -> Callable[[], tuple[Counted, ...] | Refused]:
        """Run them now; the result has what ``count`` returns.

        ncu writes its report as it ends, which takes longer than the runs and needs no card: that
        and reading it is done in a thread meanwhile.
        """
        tool = shutil.which("ncu")
        if tool is None:
            return lambda: Refused("ncu is not on the PATH; install Nsight Compute")
        asked = self._asked(depth, also)
        counted = self._begun(tool, runs, asked)
        if depth != "rules":
            return counted
        ruled = self._begun(tool, runs, asked.with_rules)
        return lambda: _with_rules(counted(), ruled())

    def _begun(
        self, tool: str, runs: Sequence[tuple[Build, Job]], asked: _Asked
    ) -> Callable[[], tuple[Counted, ...] | Refused]:
        process = self._process(tool, asked.arguments)
        failure = self._run(process, runs)
        ending = self._threads.submit(self._ended, process, failure, tool, runs, asked)
        return lambda: ending.result() or self._counted(tool, runs, asked)

    def _asked(self, depth: Depth, also: Sequence[str]) -> _Asked:
        close = depth != "brief"
        names = (*(self._metrics if close else self._brief), *(n for n in also if n in VOCABULARY))
        metrics = tuple(dict.fromkeys(filter(_of_ncu, names)))
        return _Asked(metrics, self._lines if close else (), self._manners)

    def _counted(
        self, tool: str, runs: Sequence[tuple[Build, Job]], asked: _Asked
    ) -> tuple[Counted, ...] | Refused:
        while True:
            process = self._process(tool, asked.arguments)
            found = self._ended(process, self._run(process, runs), tool, runs, asked)
            if found is not None:
                return found

    def _ended(
        self,
        process: NcuProcess,
        failure: str,
        tool: str,
        runs: Sequence[tuple[Build, Job]],
        asked: _Asked,
    ) -> tuple[Counted, ...] | Refused | None:
        """What the process wrote at its end; None where it should be asked in another way."""
        try:
            process.host.close(seconds=60.0)
            if not failure and process.report.exists():
                return self._read(tool, process, runs, asked)
            if self._learned(process.log, asked):
                return None
            return Refused(advice(failure, process.log))
        finally:
            process.close()

    def _process(self, tool: str, arguments: Sequence[str]) -> NcuProcess:
        """The one that waits longest, if it was started for just this; a new one else."""
        for process in self._waiting:
            if process.arguments == tuple(arguments):
                self._waiting.remove(process)
                return process
        self.close()
        return NcuProcess(self._device, tool, arguments)

    def _run(self, process: NcuProcess, runs: Sequence[tuple[Build, Job]]) -> str:
        failure = process.run(
            [self._cases[key] for key in dict.fromkeys(job.case for _, job in runs)], runs
        )
        if not failure:
            self._known = runs[0]
        return failure

    def _learned(self, log: Path, asked: _Asked) -> bool:
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
        self, tool: str, process: NcuProcess, runs: Sequence[tuple[Build, Job]], asked: _Asked
    ) -> tuple[Counted, ...] | Refused:
        launches = load(process.report, tool, asked.collected)
        lost: tuple[Missing, ...] = ()
        if isinstance(launches, Unreadable):
            lost = (Missing(_BY_LINE, f"no figures by line, and no rules: {launches.reason}"),)
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
        asked: _Asked,
    ) -> Counted:
        kernels = self._kernels(build, launches) if asked.by_line else ()
        metrics, missing = self._combined(launches, asked)
        if kernels:
            flops = sum(sum(k.flops.values()) for k in kernels)
            metrics.append(Metric("flop_count.sum", flops, "flop", "ncu", "machine code"))
        elif asked.by_line and not lost:
            lost = (Missing(_BY_LINE, "ncu's report has no figures by instruction"),)
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
        self, launches: Sequence[LaunchReport], asked: _Asked
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


def _with_rules(
    counted: tuple[Counted, ...] | Refused, ruled: tuple[Counted, ...] | Refused
) -> tuple[Counted, ...] | Refused:
    if isinstance(counted, Refused):
        return counted
    if isinstance(ruled, Refused):
        lost = Missing("rules", ruled.reason)
        return tuple(replace(one, missing=(*one.missing, lost)) for one in counted)
    return tuple(replace(one, rules=other.rules) for one, other in zip(counted, ruled, strict=True))


def _of_ncu(name: str) -> bool:
    """Whether to ask ncu for it: a name that is not in the vocabulary is taken for one of ncu's."""
    entry = VOCABULARY.get(name)
    return entry is None or ("ncu" in entry.sources and name != "flop_count.sum")


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
