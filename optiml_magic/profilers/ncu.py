"""Nsight Compute over a batch of builds: one ncu process around one device host.

Starting ncu and Python dominates, so a batch costs little more than one. The host answers the same
frames as ever; ncu's own words go to a log file, since they would stand between the frames. Kernels
run between profiler start and stop, in the order of the jobs, so results map by order, and each by
its name as a check. ncu's durations are never used: it replays kernels and changes what they meet.
"""

from __future__ import annotations

import csv
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from optiml_magic.devices.base import Case, Job
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.model.build import Build
from optiml_magic.model.measurement import Metric

METRICS = (
    "smsp__inst_executed.sum",
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "dram__bytes.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
)
_SUMS = frozenset(name for name in METRICS if name.endswith(".sum"))
_SECONDS = 180.0
_KERNEL = "Kernel Name"


@dataclass(frozen=True)
class Refused:
    """Why ncu gave no counters, in a sentence, with the remedy."""

    reason: str


class NcuCounters:
    """Counts builds on one device; ``cases`` are put on the host that ncu wraps."""

    def __init__(self, device: str, cases: Sequence[Case]) -> None:
        self._device = device
        self._cases = {case.key: case for case in cases}

    def count(self, runs: Sequence[tuple[Build, Job]]) -> tuple[tuple[Metric, ...], ...] | Refused:
        """The metrics of each run, summed over its launches, ratios weighted by instructions."""
        tool = shutil.which("ncu")
        if tool is None:
            return Refused("ncu is not on the PATH; install Nsight Compute")
        with tempfile.TemporaryDirectory(prefix="optiml-ncu-") as folder:
            report, log = Path(folder, "report.ncu-rep"), Path(folder, "ncu.log")
            prefix = [
                tool, "--profile-from-start", "off", "--clock-control", "none", "--metrics",
                ",".join(METRICS), "--log-file", str(log), "--force-overwrite", "-o",
                str(report.with_suffix("")),
            ]  # fmt: skip
            failure = self._run(prefix, runs)
            if failure or not report.exists():
                return Refused(_advice(failure, log))
            return _assigned(_read(tool, report), runs)

    def _run(self, prefix: Sequence[str], runs: Sequence[tuple[Build, Job]]) -> str:
        host = HostedDevice(self._device, seconds=_SECONDS, prefix=tuple(prefix))
        try:
            for key in dict.fromkeys(job.case for _, job in runs):
                host.put(self._cases[key])
            for build, job in runs:
                execution = host.execute(build, replace(job, count=True))
                if execution.fault is not None:
                    return execution.fault.message
        finally:
            host.close(seconds=60.0)
        return ""


def _read(tool: str, report: Path) -> list[dict[str, str]]:
    """One row a kernel launch, as ncu prints them; the row of units comes first and is left out."""
    # Without base units ncu prints bytes as Kbyte or Mbyte, whichever makes the number short.
    units = ["--print-units", "base"]
    command = [tool, "--import", str(report), "--csv", "--page", "raw", *units]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=_SECONDS)  # noqa: S603
    lines = done.stdout.splitlines()
    start = next((at for at, line in enumerate(lines) if line.startswith('"ID"')), len(lines))
    return list(csv.DictReader(lines[start:]))[1:]


def _assigned(
    rows: Sequence[dict[str, str]], runs: Sequence[tuple[Build, Job]]
) -> tuple[tuple[Metric, ...], ...] | Refused:
    wanted = sum(len(job.plan.launches) for _, job in runs)
    if len(rows) != wanted:
        return Refused(f"ncu saw {len(rows)} launches where {wanted} were made")
    found, at = [], 0
    for build, job in runs:
        mine = rows[at : at + len(job.plan.launches)]
        at += len(mine)
        for row, launch in zip(mine, job.plan.launches, strict=True):
            base = next((n for n, low in build.names.items() if low == launch.kernel), "")
            if base.split("<")[0].split("::")[-1] not in row[_KERNEL]:
                return Refused(f"ncu's launch of {row[_KERNEL]} is not that of {base}")
        found.append(tuple(_summed(mine)))
    return tuple(found)


def _summed(rows: Sequence[dict[str, str]]) -> list[Metric]:
    metrics = []
    weights = [_number(row.get("smsp__inst_executed.sum")) or 0.0 for row in rows]
    for name in METRICS:
        values = [_number(row.get(name)) for row in rows]
        known = [value for value in values if value is not None]
        if len(known) < len(rows):
            continue  # a counter that was not to be had is absent, never zero
        if name in _SUMS:
            metrics.append(Metric(name, sum(known), "", "ncu"))
        elif sum(weights):
            mean = sum(v * w for v, w in zip(known, weights, strict=True)) / sum(weights)
            metrics.append(Metric(name, mean, "", "ncu"))
    for short in ("ld", "st"):
        stem = f"pipe_lsu_mem_global_op_{short}"
        values_by_name = {m.name: m.value for m in metrics}
        requests = values_by_name.get(f"l1tex__t_requests_{stem}.sum")
        sectors = values_by_name.get(f"l1tex__t_sectors_{stem}.sum")
        if requests and sectors is not None:
            name = f"l1tex__average_t_sectors_per_request_{stem}.ratio"
            metrics.append(Metric(name, sectors / requests, "sector/request", "ncu"))
    return metrics


def _number(text: str | None) -> float | None:
    """A figure of ncu's CSV; None for an empty field, ``nan`` or ``n/a``."""
    try:
        value = float((text or "").replace(",", ""))
    except ValueError:
        return None
    return value if value == value else None  # noqa: PLR0124  # NaN is not itself


def _advice(failure: str, log: Path) -> str:
    said = log.read_text(errors="replace") if log.exists() else ""
    if "ERR_NVGPUCTRPERM" in said:
        return (
            "the driver keeps the counters from ordinary users (ERR_NVGPUCTRPERM): set "
            "NVreg_RestrictProfilingToAdminUsers=0 for the nvidia module, or run as root"
        )
    errors = [line for line in said.splitlines() if "==ERROR==" in line]
    return failure or (
        errors[0].replace("==ERROR==", "").strip() if errors else "ncu gave no report"
    )
