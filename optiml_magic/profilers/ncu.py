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
from optiml_magic.profilers.report import LaunchReport, Unreadable, from_csv, load

_GIVEN = ("launch__", "sm__maximum_warps_")  # in every report, and not to be asked for
_SECTION = ("--section", "SourceCounters")
_RULES = ("--set", "detailed")
_REFUSED = re.compile(r"(?:Failed to find metric|[Uu]nknown metric)[:\s]+([\w.]+)")
_DERIVED = re.compile(r"l1tex__average_t_sectors_per_request_(\w+)\.ratio")
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

    @property
    def collected(self) -> list[str]:
        """What is read of a report; ratios follow from two others."""
        weights = [VOCABULARY[n].weight for n in self.metrics if n in VOCABULARY]
        names = dict.fromkeys((*self.metrics, *filter(_of_ncu, weights), *self.by_line))
        names.update(dict.fromkeys(part for n in self.metrics for part in _parts(n)))
        return [n for n in names if n not in self.manners.unknown and not _parts(n)]

    @property
    def arguments(self) -> list[str]:
        """Those of ncu's command line."""
        by_section = self.manners.by_section and bool(self.by_line)
        names = [n for n in self.collected if not n.startswith(_GIVEN)]
        if by_section:
            names = [n for n in names if n not in self.by_line]
        return ["--metrics", ",".join(names), *(_SECTION if by_section else ())]


class NcuCounters:
    """Counts builds on one device; ``cases`` are put on the host that ncu wraps.

    Looked at closely, ``metrics`` are collected of a launch and ``by_line`` of its machine
    instructions, else ``brief`` alone. ``disassemble`` places the instructions in the text.
    """

    def __init__(
        self,
        device: str,
        cases: Sequence[Case],
        *,
        metrics: Sequence[str] = default_counters(),
        by_line: Sequence[str] = line_counters(),
        brief: Sequence[str] = brief_counters(),
        disassemble: Disassemble | None = None,
    ) -> None:
        self._device = device
        self._cases = {case.key: case.without_answers() for case in cases}
        self._metrics = tuple(metrics)
        self._lines = tuple(by_line)
        self._brief = tuple(brief)
        self._disassemble = disassemble
        self._manners = _MANNERS.setdefault(device, _Manners())
        self._waiting: list[NcuProcess] = []  # all with the same arguments
        self._known: tuple[Build, Job] | None = None  # a run that ended well
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="optiml-ncu")
        self._priming = ThreadPoolExecutor(thread_name_prefix="optiml-ncu-first")

    def warm(self, *, depth: Depth = "brief", also: Sequence[str] = (), count: int = 1) -> None:
        """Let ncu start now, ``count`` times: what is counted next, at that depth, need not wait.

        A start takes longer than a small batch, so one alone is not there in time.
        """
        tool = shutil.which("ncu")
        if tool is None:
            return
        arguments = self._asked(depth, also).arguments
        if self._waiting and self._waiting[0].arguments != tuple(arguments):
            self.close()
        while len(self._waiting) < count:
            self._waiting.append(process := NcuProcess(self._device, tool, arguments))
            process.start()
            if self._known is not None:
                build, job = self._known
                process.prime(self._priming, self._cases[job.case], build, job)

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
        process = self._process(tool, asked.arguments)
        failure = self._run(process, runs)
        ending = self._threads.submit(self._ended, process, failure, tool, runs, asked)

        def counted() -> tuple[Counted, ...] | Refused:
            found = ending.result() or self._counted(tool, runs, asked, ())
            return found if depth != "rules" else self._with_rules(found, tool, runs, asked)

        return counted

    def _with_rules(
        self,
        counted: tuple[Counted, ...] | Refused,
        tool: str,
        runs: Sequence[tuple[Build, Job]],
        asked: _Asked,
    ) -> tuple[Counted, ...] | Refused:
        """In a process of its own: with so many passes the counters of the L1 are off by 1 %."""
        if isinstance(counted, Refused):
            return counted
        with_rules = self._counted(tool, runs, replace(asked, by_line=()), _RULES)
        if isinstance(with_rules, Refused):
            lost = Missing("rules", with_rules.reason)
            return tuple(replace(one, missing=(*one.missing, lost)) for one in counted)
        return tuple(
            replace(one, rules=other.rules) for one, other in zip(counted, with_rules, strict=True)
        )

    def _asked(self, depth: Depth, also: Sequence[str]) -> _Asked:
        close = depth != "brief"
        names = (*(self._metrics if close else self._brief), *(n for n in also if n in VOCABULARY))
        metrics = tuple(dict.fromkeys(filter(_of_ncu, names)))
        return _Asked(metrics, self._lines if close else (), self._manners)

    def _counted(
        self, tool: str, runs: Sequence[tuple[Build, Job]], asked: _Asked, sections: Sequence[str]
    ) -> tuple[Counted, ...] | Refused:
        while True:
            process = self._process(tool, [*asked.arguments, *sections])
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
        if self._waiting and self._waiting[0].arguments == tuple(arguments):
            return self._waiting.pop(0)
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


def combined(name: str, launches: Sequence[LaunchReport]) -> float | None:
    """A metric of a whole plan; None where a launch that has a part in it has no value."""
    parts = _parts(name)
    if parts:
        sectors, requests = (combined(part, launches) for part in parts)
        return sectors / requests if requests and sectors is not None else None
    values = [one.values.get(name) for one in launches]
    entry = VOCABULARY.get(name)
    known = [value for value in values if value is not None]
    if not known:
        return None
    if entry is not None and entry.combine == "mean":
        weights = [one.values.get(entry.weight) for one in launches]
        if len(launches) == 1:
            return known[0]
        if None in weights or any(v is None and w for v, w in zip(values, weights, strict=True)):
            return None
        total = sum(w or 0.0 for v, w in zip(values, weights, strict=True) if v is not None)
        products = (v * (w or 0.0) for v, w in zip(values, weights, strict=True) if v is not None)
        return sum(products) / total if total else None
    if len(known) < len(values):
        return None
    return max(known) if entry is not None and entry.combine == "max" else sum(known)


def _parts(name: str) -> tuple[str, ...]:
    """Sectors and requests, for their ratio."""
    found = _DERIVED.fullmatch(name)
    if found is None:
        return ()
    return f"l1tex__t_sectors_{found[1]}.sum", f"l1tex__t_requests_{found[1]}.sum"


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
