"""compute-sanitizer around the device host: its four tools' reports as hazards.

Its own words go to a log file, since they would stand between the frames of the pipe. Only what it
says of the user's text counts; the reports on CuPy's own kernels name no line of it.
Source: Compute Sanitizer User Manual, "Understanding ... Errors" of each tool.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from itertools import repeat
from pathlib import Path

from optiml_magic.devices.base import Case, Job
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.errors import OptimlError
from optiml_magic.model.build import Build
from optiml_magic.model.hazard import Hazard, HazardKind, Index, Severity
from optiml_magic.model.verdict import OutputCheck
from optiml_magic.verifiers.hazards import UNFINISHED, Inspection

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
SANITIZING = 120.0  # seconds for all runs of an inspection; ours
_REPORTING = (5.0, 60.0)  # seconds for a tool to write its report, at least and at most; ours
_PREFIX = "========="
_HEAD = re.compile(
    r"(?P<invalid>Invalid __(?P<space>\w+)__ (?P<what>read|write|atomic) of size (?P<size>\d+))|"
    r"(?P<race>(?P<level>Error|Warning|Warn|WARN|ERROR|Info|INFO):? ?(?:-+ )?Race reported)|"
    r"(?P<undefined>Uninitialized __(?P<from>\w+)__ memory read of size (?P<width>\d+))|"
    r"(?P<barrier>Barrier error detected)"
)
_REACH = "every thread that the barrier waits for must reach it, and be named by its mask"
_BARRIERS: dict[str, tuple[HazardKind, str]] = {
    "Invalid arguments": ("invalid_lane", _REACH),
    "Missing wait": (
        "missed_phase",
        "wait for each phase, in some thread, before anybody arrives in the next",
    ),
}
_LINE = re.compile(r"cell\.cu:(\d+)")
_KERNEL = re.compile(r"\bat (?:\S+ in )?(?:void )?([A-Za-z_]\w*)")
_ACCESS = re.compile(r"(Read|Write|Atomic) access at (.*?)(?= and (?:Read|Write|Atomic) access|$)")
_COUNT = re.compile(r"\[(\d+) hazards?\]")
_WHO = re.compile(r"by thread \((\d+),(\d+),(\d+)\) in block \((\d+),(\d+),(\d+)\)")
_END = re.compile(
    r"(Saved host backtrace|Host Frame|Target application|ERROR SUMMARY|RACECHECK SUM)"
)


class SanitizerInspector:
    """Runs jobs under each tool, within ``seconds``."""

    name = "compute-sanitizer"

    def __init__(self, device: str, *, seconds: float = SANITIZING) -> None:
        self._device = device
        self._cases: dict[str, Case] = {}
        self._seconds = seconds
        self._waiting: dict[str, _Watched] = {}  # by tool

    def put(self, case: Case) -> None:
        self._cases[case.key] = case.without_answers()

    def warm(self) -> None:
        tool = shutil.which("compute-sanitizer")
        for name in TOOLS if tool else ():
            if tool and name not in self._waiting:
                self._waiting[name] = _Watched(self._device, tool, name, self._seconds)
                self._waiting[name].host.start()

    def close(self) -> None:
        while self._waiting:
            self._waiting.popitem()[1].close(seconds=0.0)

    def writer(self, build: Build, job: Job, check: OutputCheck) -> None:
        """No tool tells."""

    def inspect(self, runs: Sequence[tuple[Build, Job]]) -> list[Inspection]:
        """All runs go through one process of each tool, since starting one is what takes time.

        A report does not say which build it means, and kernels of several are named alike. So each
        run gets a process of its own of every tool that had something to say, or did not end.
        """
        tool = shutil.which("compute-sanitizer")
        if tool is None:
            missing = "compute-sanitizer is not on the PATH; it comes with the toolkit"
            return [Inspection((), missing) for _ in runs]
        until = time.monotonic() + self._seconds
        # Side by side, but no more of them than tools: each holds a context on the card.
        with ThreadPoolExecutor(len(TOOLS)) as threads:
            ask = partial(self._watched, tool, until)
            together = list(threads.map(ask, TOOLS, repeat(runs)))
            telling = [
                name
                for name, found in zip(TOOLS, together, strict=True)
                if found.hazards or found.unchecked
            ]
            if len(runs) == 1 or not telling:
                return [_joined(together)] * len(runs)
            asked = [(name, [run]) for run in runs for name in telling]
            alone = list(threads.map(ask, *zip(*asked, strict=True)))
        return [_joined(alone[at : at + len(telling)]) for at in range(0, len(alone), len(telling))]

    def _watched(
        self, tool: str, until: float, name: str, runs: Sequence[tuple[Build, Job]]
    ) -> Inspection:
        """The runs under one tool, up to the first that faults."""
        left = until - time.monotonic()
        if left <= 0:
            return Inspection((), f"{name}: the {self._seconds:g} s for it were spent")
        unchecked = ""
        watched = self._waiting.pop(name, None) or _Watched(self._device, tool, name, left)
        host = watched.host
        try:
            for key in dict.fromkeys(job.case for _, job in runs):
                host.put(self._cases[key])
            for build, job in runs:
                fault = host.execute(build, replace(job, checks=True, count=False)).fault
                if fault is not None:
                    # A kernel's own fault ends it as it should, but not those behind it.
                    ended = len(runs) == 1 and fault.outcome not in UNFINISHED
                    unchecked = "" if ended else f"{name}: {fault.message}"
                    break
            else:
                fault = None
        except OptimlError as lost:  # a card that the tool does not support fails anywhere
            fault, unchecked = None, f"{name}: {lost.message.strip().splitlines()[-1]}"
        finally:
            least, most = _REPORTING
            text = watched.close(seconds=min(most, max(least, until - time.monotonic())))
        if not unchecked and fault is None and "SUMMARY" not in text:
            unchecked = f"{name} gave no summary"
        return Inspection(parse(text), unchecked)


class _Watched:
    """A device host inside one of the tools, and the folder of its report."""

    def __init__(self, device: str, tool: str, name: str, seconds: float) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="optiml-sanitizer-")
        self.host = sanitized(device, tool, name, Path(self._folder.name), seconds=seconds)

    def close(self, *, seconds: float) -> str:
        """End it, by force after so many seconds; what the tool wrote."""
        with self._folder as folder:
            self.host.close(seconds=seconds)
            return logged(Path(folder))


def _joined(found: Sequence[Inspection]) -> Inspection:
    hazards = [hazard for inspection in found for hazard in inspection.hazards]
    unchecked = "; ".join(i.unchecked for i in found if i.unchecked)
    return Inspection(tuple(_distinct(hazards)), unchecked)


def sanitized(device: str, tool: str, name: str, folder: Path, *, seconds: float) -> HostedDevice:
    """A device host inside one of the tools, which writes its report into ``folder``."""
    prefix: tuple[str, ...] = (
        tool,
        "--tool",
        name,
        "--log-file",
        str(folder / "%p.log"),
        "--print-limit",
        "1000",
    )
    if name == "racecheck":
        prefix += ("--racecheck-report", "analysis")
    return HostedDevice(device, seconds=seconds, prefix=prefix)


def logged(folder: Path) -> str:
    """What the tool wrote, of all its processes."""
    logs = sorted(folder.glob("*.log"), key=lambda path: path.stat().st_mtime)
    return "\n".join(path.read_text(errors="replace") for path in logs)


def parse(text: str, *, kernel: str = "") -> tuple[Hazard, ...]:
    """The hazards of a report, merged by kind and lines; of one ``kernel``, where it is named."""
    found: list[Hazard] = []
    for record in _records(text):
        if not kernel or re.search(rf"\b{re.escape(kernel)}\b", record):
            found += _hazards(record)
    return tuple(_distinct(found))


def kernels(text: str) -> set[str]:
    """The kernels that a report has something to say about."""
    return {name for record in _records(text) for name in _KERNEL.findall(record)}


def _records(text: str) -> Iterator[str]:
    """Each report on one line: from its head to the next head, or to the host's backtrace."""
    record: list[str] = []
    for line in text.splitlines():
        stripped = line.removeprefix(_PREFIX).strip()
        if not line.startswith(_PREFIX):
            continue
        if _HEAD.match(stripped):
            if record:
                yield " ".join(record)
            record = [stripped]
        elif record and stripped and not _END.match(stripped):
            record.append(stripped)
        elif record:
            yield " ".join(record)
            record = []
    if record:
        yield " ".join(record)


def _hazards(record: str) -> Iterator[Hazard]:
    head = _HEAD.match(record)
    assert head is not None
    if head["race"]:
        yield from _races(record, head["level"].lower())
        return
    line = _LINE.search(record)
    if line is None:
        return
    thread, block = _who(record)
    if head["invalid"]:
        misaligned = "misaligned" in record
        kind: HazardKind = "misaligned" if misaligned else "out_of_bounds"
        message = f"an invalid {head['what']} of {head['size']} bytes of {head['space']} memory"
        if near := re.search(r"is ([\d,]+) bytes (after|before) the nearest allocation", record):
            message += f", {near[1]} bytes {near[2]} the nearest array"
        fix = (
            "start at a multiple of the access's width, or use narrower accesses"
            if misaligned
            else "compare the index with the size of the array before the access"
        )
    elif head["undefined"]:
        kind, message = "uninitialised", f"{head['width']} bytes that nothing has written are read"
        fix = "write every element before it is read"
        if head["from"] == "global":
            fix += ", or clear the buffer with `#pragma optiml zero(NAME)`"
    else:
        message = record.partition(" at ")[0]
        message = message.removeprefix("Barrier error detected.").strip(" .")
        kind, fix = _BARRIERS.get(message, ("barrier_divergence", _REACH))
    yield Hazard(
        kind=kind,
        message=f"compute-sanitizer: {message}",
        fix=fix,
        line=int(line[1]),
        block=block,
        thread=thread,
    )


def _races(record: str, level: str) -> Iterator[Hazard]:
    """The first access races with each that follows it."""
    accesses = [(what, _LINE.search(rest), rest) for what, rest in _ACCESS.findall(record)]
    (first, at, _), *others = accesses or [("", None, "")]
    for what, line, rest in others:
        if at is None or line is None:
            continue
        count = _COUNT.search(rest)
        severity: Severity = "error" if level == "error" else "warning"
        yield Hazard(
            kind="race",
            message=f"compute-sanitizer: a race of a {first.lower()} with a {what.lower()}",
            fix="put __syncthreads() or __syncwarp() between the two lines",
            line=int(at[1]),
            other_line=int(line[1]),
            count=int(count[1]) if count else 1,
            severity=severity,
        )


def _who(record: str) -> tuple[Index | None, Index | None]:
    match = _WHO.search(record)
    if match is None:
        return None, None
    x, y, z, bx, by, bz = map(int, match.groups())
    return (x, y, z), (bx, by, bz)


def _distinct(found: Sequence[Hazard]) -> list[Hazard]:
    merged: dict[tuple[object, ...], Hazard] = {}
    for hazard in found:
        key = (hazard.kind, hazard.severity, hazard.lines)
        first = merged.get(key)
        merged[key] = replace(first or hazard, count=hazard.count + (first.count if first else 0))
    return sorted(merged.values(), key=lambda h: (h.severity, h.lines))
