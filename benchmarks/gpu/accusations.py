"""Whom synccheck and racecheck accuse of kernels that wait at barriers, and who is right.

    python benchmarks/gpu/accusations.py FOLDER          # on a GPU, about 40 s with 16 cores
    python benchmarks/gpu/accusations.py FOLDER --show   # the table of what lies there

Needs compute-sanitizer on the PATH (or /usr/local/cuda/bin), CuPy and this package. Pairs of
``testing/faulty`` run on the card as they are and under both tools, each in a process of its own,
with every element compared with what the twin gives on the emulated device; that device's own
checks look at the same text. FOLDER/accusations.jsonl keeps a line for each program, with the raw
reports; a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic import chips
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Array, Case, Job
from optiml_magic.devices.choice import choose
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.errors import OptimlError
from optiml_magic.model.build import Build
from optiml_magic.model.hazard import Hazard
from optiml_magic.testing import faulty
from optiml_magic.verifiers.sanitizer import logged, parse, sanitized

TOOLS = ("synccheck", "racecheck")
NAMES = (
    "pipeline_without_wait",  # a pipeline with the state of its block, copies of each thread
    "pipeline_without_acquire",  # the same, copies of the block
    "pipeline_of_a_thread",
    "copies_that_arrive_counted",  # what the pipelines are made of
    "copies_that_arrive_noinc",
    "double_buffer_reused",
    "double_buffer_in_a_branch",
    "copy_waits_too_little",
    "mbarrier_not_waited_for",
    "mbarrier_of_half_warps",
    "mbarrier_phase_missed",
    "mbarrier_test_ignored",
    "mbarrier_wrong_parity",
    "named_barrier_wrong_group",
    "barrier_of_two_branches",
)
HANGS = {("mbarrier_wrong_parity", False)}  # who asks for a phase too late waits for ever
SECONDS = 12.0  # for one program under a tool; then the host is killed
WIDTHS = (28, 8, 8, 28, 44, 44)
_PHRASE = re.compile(
    r"Barrier error detected\. ([^.]*?)\.?$|(Error|Warning): (Race reported)", re.MULTILINE
)


def main(folder: Path, asked: str, *, show_only: bool) -> int:
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "accusations.jsonl"
    rows = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    done = {(seen["kernel"], seen["twin"]) for seen in rows}
    todo = [
        (n, t) for n in NAMES for t in (True, False) if (n, t) not in done and (n, t) not in HANGS
    ]
    if todo and not show_only:
        began = time.monotonic()
        device, about = choose(asked), versions()
        workers = max(1, min(len(todo), (os.cpu_count() or 2) * 3 // 4))  # of three hosts each
        context = multiprocessing.get_context("spawn")
        with (
            ProcessPoolExecutor(workers, mp_context=context) as pool,
            record.open("a") as file,
        ):
            tasks = [pool.submit(row, name, twin, device.name, about) for name, twin in todo]
            for task in as_completed(tasks):
                rows.append(task.result())
                file.write(json.dumps(rows[-1]) + "\n")
                file.flush()
        print(f"{len(todo)} programs in {time.monotonic() - began:.0f} s")
    show(rows)
    return 0


def row(name: str, twin: bool, device: str, about: dict[str, str]) -> dict[str, Any]:
    """One program: on the card, under each tool, and on the emulated device."""
    began = time.monotonic()
    chip = choose(device).chip
    example = (faulty.twin if twin else faulty.faulty)(name)
    wanted, hazards, ended = emulated(faulty.twin(name), chip.name)
    if not twin:
        _, hazards, ended = emulated(example, chip.name)
    case, build = example.case(), built(example.text, example.kernels, chip.name)
    job = example.job(build, checks=False)
    with ThreadPoolExecutor(len(TOOLS) + 1) as threads:
        plain = threads.submit(on_card, device, case, build, job, wanted)
        asked = {
            tool: threads.submit(under, tool, device, case, build, job, wanted) for tool in TOOLS
        }
        return {
            "kernel": name,
            "twin": twin,
            "expected": {kind: list(lines) for kind, lines in example.expected.items()},
            "plain": plain.result(),
            "emulated": {"found": by_kind(hazards), "fault": ended},
            "tools": {tool: answer.result() for tool, answer in asked.items()},
            "about": about,
            "seconds": time.monotonic() - began,
        }


@cache
def built(text: str, kernels: tuple[str, ...], chip: str) -> Build:
    found = NvrtcCompiler().compile(text, kernels, chips.chip(chip), CompileOptions())
    assert isinstance(found, Build), found
    return found


def emulated(example: faulty.Example, chip: str) -> tuple[dict[str, Array], list[Hazard], str]:
    """The outputs, what the checks found, and why it ended where it did not by itself."""
    device, case = EmulatedDevice(chip), example.case()
    device.put(case)
    build = built(example.text, example.kernels, chip)
    execution = device.execute(build, example.job(build, checks=True))
    outputs = {b.name: device.read(case.key, b.name) for b in case.buffers if b.role != "input"}
    return outputs, list(execution.hazards), execution.fault.message if execution.fault else ""


def on_card(
    device: str, case: Case, build: Build, job: Job, wanted: dict[str, Array]
) -> dict[str, Any]:
    return ran(HostedDevice(device, seconds=SECONDS), case, build, job, wanted)


def under(
    tool: str, device: str, case: Case, build: Build, job: Job, wanted: dict[str, Array]
) -> dict[str, Any]:
    """The run in a process of the tool, with its report."""
    with tempfile.TemporaryDirectory(prefix="optiml-accusations-") as folder:
        host = sanitized(device, program(), tool, Path(folder), seconds=SECONDS)
        found = ran(host, case, build, job, wanted)
        text = logged(Path(folder))
    said = Counter(one or f"{level}: {race}" for one, level, race in _PHRASE.findall(text))
    hazards = [hazard for hazard in parse(text) if hazard.severity == "error"]
    return {**found, "found": by_kind(hazards), "said": dict(said), "report": text}


def ran(
    host: HostedDevice, case: Case, build: Build, job: Job, wanted: dict[str, Array]
) -> dict[str, Any]:
    """How many elements differ from the wanted ones, -1 where there are none to compare."""
    began, wrong, fault = time.monotonic(), -1, ""
    try:
        host.put(case)
        execution = host.execute(build, job)
        fault = f"{execution.fault.outcome}: {execution.fault.message}" if execution.fault else ""
        if not fault:
            wrong = sum(differing(host.read(case.key, n), array) for n, array in wanted.items())
    except OptimlError as lost:
        fault = lost.message
    finally:
        host.close(seconds=20.0)
    return {"wrong": wrong, "fault": fault, "seconds": time.monotonic() - began}


def differing(got: Array, wanted: Array) -> int:
    bits = f"u{wanted.itemsize}"
    return int(np.count_nonzero(got.view(bits) != wanted.view(bits)))


def by_kind(hazards: Sequence[Hazard]) -> dict[str, list[int]]:
    found: dict[str, set[int]] = {}
    for hazard in hazards:
        if hazard.severity == "error":
            found.setdefault(hazard.kind, set()).update(hazard.lines)
    return {kind: sorted(lines) for kind, lines in found.items()}


def program() -> str:
    return shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"


def versions() -> dict[str, str]:
    """The tool's release and the compiler's, on which its answers depend."""
    said = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True)
    release = next((line for line in said.stdout.splitlines() if "ersion" in line), said.stdout)
    return {"compute-sanitizer": release.strip(), "nvrtc": NvrtcCompiler().version}


def show(rows: Sequence[dict[str, Any]]) -> None:
    """A line for each program, then whom each phrase of a tool accuses."""
    for about in {json.dumps(r["about"], sort_keys=True) for r in rows}:
        print(about)
    heads = ("kernel", "", "wrong", "emulated", *TOOLS)
    table = [heads, *(line(r) for r in sorted(rows, key=lambda r: (r["kernel"], not r["twin"])))]
    for cells in table:
        print("".join(f"{c:<{w}.{w - 1}}" for c, w in zip(cells, WIDTHS, strict=True)))
    print("\nphrase: the right programs that it is said of; the faulty ones")
    for phrase in sorted({(tool, what) for r in rows for tool in TOOLS for what in said(r, tool)}):
        of = [
            ", ".join(
                r["kernel"] for r in rows if r["twin"] is twin and phrase[1] in said(r, phrase[0])
            )
            for twin in (True, False)
        ]
        print(f"{': '.join(phrase)}: {of[0] or 'none'}; {of[1] or 'none'}")


def line(r: dict[str, Any]) -> tuple[str, ...]:
    plain, checked = r["plain"], r["emulated"]
    found = ", ".join(checked["found"]) or checked["fault"] or "nothing"
    answers = [
        ", ".join(f"{n} x {what}" for what, n in said(r, tool).items())
        or r["tools"][tool]["fault"]
        or "nothing"
        for tool in TOOLS
    ]
    which = "right" if r["twin"] else "faulty"
    return r["kernel"], which, plain["fault"] or str(plain["wrong"]), found, *answers


def said(r: dict[str, Any], tool: str) -> dict[str, int]:
    found: dict[str, int] = r["tools"][tool]["said"]
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    sys.exit(main(arguments.folder, arguments.device, show_only=arguments.show))
