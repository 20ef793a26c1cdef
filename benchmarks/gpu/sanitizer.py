"""compute-sanitizer on a real GPU beside the emulator's expectations: kind and lines of each fault.

    python benchmarks/gpu/sanitizer.py [FOLDER]

Needs compute-sanitizer on the PATH (or /usr/local/cuda/bin), CuPy and this package. Each tool runs
the faulty kernels that it should see, every twin of those, and a few that it does not cover: twelve
in one process, where no fault ends it. Results are kept in FOLDER/sanitizer.jsonl with the raw
reports beside it, so that an interrupted run goes on where it stopped. FOLDER is $OUT or
benchmarks/results where it is not given.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.choice import choose
from optiml_magic.model.build import Build
from optiml_magic.model.hazard import Hazard
from optiml_magic.testing import faulty
from optiml_magic.verifiers.sanitizer import TOOLS, logged, parse, sanitized

# They would on a GPU as well, the last one if it asks too late.
HANGS = {"endless_loop", "named_barriers_crossed", "mbarrier_wrong_parity"}
BEYOND = ("last_block_without_fence", "two_blocks_one_cell", "shuffle_beyond_the_mask")
SECONDS = 25.0  # for one kernel under a tool; then the host is killed
BUDGET = 330.0  # seconds for everything; what is left is done by the next call


def main(folder: Path) -> int:
    began = time.monotonic()
    folder.mkdir(parents=True, exist_ok=True)
    record = folder / "sanitizer.jsonl"
    rows = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    done = {(row["tool"], row["kernel"], row["twin"]) for row in rows}
    for tool in TOOLS:
        examples = [e for e in wanted(tool) if (tool, e.name, not e.expected) not in done]
        while examples and time.monotonic() - began < BUDGET:
            batch, examples = examples[:12], examples[12:]
            fresh = run(tool, batch, folder)
            with record.open("a") as file:
                file.writelines(json.dumps(row) + "\n" for row in fresh)
            rows += fresh
    show(rows)
    ran = {(r["tool"], r["kernel"], r["twin"]) for r in rows}
    left = sum((t, e.name, not e.expected) not in ran for t in TOOLS for e in wanted(t))
    print(f"{left} runs left; call again to do them" if left else "all runs done")
    return 0


def wanted(tool: str) -> list[faulty.Example]:
    """The pairs that the tool should see, and some beyond it, to learn what it says of those."""
    names = [n for n in faulty.NAMES if n not in HANGS]
    mine = [n for n in names if faulty.faulty(n).tool == tool]
    others = [n for n in BEYOND if tool in ("racecheck", "synccheck")]
    shuffles = (
        [n for n in names if n.startswith(("shuffle", "vote"))] if tool == "synccheck" else []
    )
    chosen = list(dict.fromkeys([*mine, *others, *shuffles]))
    return [make(name) for name in chosen for make in (faulty.faulty, faulty.twin)]


def run(tool: str, examples: Sequence[faulty.Example], folder: Path) -> list[dict[str, Any]]:
    """One process of the tool; reports are told apart by kernel names of their own."""
    device = choose("cuda")
    program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
    rows, named = [], []
    with tempfile.TemporaryDirectory() as scratch, tempfile.TemporaryDirectory() as cache:
        compiler = CachedCompiler(NvrtcCompiler(), Path(cache))
        host = sanitized(device.name, program, tool, Path(scratch), seconds=SECONDS)
        try:
            for number, example in enumerate(examples):
                own = renamed(example, f"case{number}_")
                build = compiler.compile(own.text, own.kernels, device.chip, CompileOptions())
                assert isinstance(build, Build), build
                host.put(own.case())
                began = time.monotonic()
                execution = host.execute(build, own.job(build, checks=True))
                fault = str(execution.fault.outcome) if execution.fault else ""
                named.append((example, own, fault, time.monotonic() - began))
        finally:
            host.close(seconds=60.0)
        text = logged(Path(scratch))
    stamp = f"{tool}-{examples[0].name}.txt"
    (folder / f"sanitizer-{stamp}").write_text(text)
    for example, own, fault, seconds in named:
        hazards = [h for kernel in own.kernels for h in parse(text, kernel=kernel)]
        rows.append(row(tool, example, hazards, fault, seconds))
        print(rows[-1], flush=True)
    return rows


def renamed(example: faulty.Example, prefix: str) -> faulty.Example:
    """The same text, lines and all, with kernels that no other example has."""
    text = example.text
    for kernel in example.kernels:
        text = re.sub(rf"\b{kernel}\b(?=\s*\(| grid)", prefix + kernel, text)
    return replace(example, text=text, name=prefix + example.name)


def row(
    tool: str, example: faulty.Example, hazards: Sequence[Hazard], fault: str, seconds: float
) -> dict[str, Any]:
    found: dict[str, list[int]] = {}
    for hazard in hazards:
        found[hazard.kind] = sorted({*found.get(hazard.kind, []), *hazard.lines})
    expected = {k: list(v) for k, v in example.expected.items() if k != "exited_lanes"}
    return {
        "tool": tool,
        "kernel": example.name,
        "twin": not example.expected,
        "covered": example.tool == tool,
        "expected": expected,
        "found": found,
        "same_kind": bool(set(expected) & set(found)),
        "same_lines": any(found.get(k) == v for k, v in expected.items()),
        "shared_line": any(set(found.get(k, [])) & set(v) for k, v in expected.items()),
        "fault": fault,
        "seconds": seconds,
    }


def show(rows: Sequence[dict[str, Any]]) -> None:
    print(f"{'tool':<10} {'kernel':<32} {'expected':<36} found")
    for r in rows:
        if not r["twin"]:
            words = "same lines" if r["same_lines"] else "a same line" if r["shared_line"] else ""
            kind = f"{r['found']} {words}" if r["found"] else f"nothing {r['fault']}"
            mark = "" if r["covered"] else " (not covered)"
            print(f"{r['tool']:<10} {r['kernel']:<32} {r['expected']!s:<36} {kind}{mark}")
    covered = [r for r in rows if r["covered"] and not r["twin"]]
    twins = [r for r in rows if r["twin"]]
    print(f"of {len(covered)} faults that a tool covers: {sum(r['same_kind'] for r in covered)} of "
          f"the same kind, {sum(r['shared_line'] for r in covered)} with a line in common, "
          f"{sum(r['same_lines'] for r in covered)} with the same lines")  # fmt: skip
    print(f"of {len(twins)} runs of twins: {sum(bool(r['found']) for r in twins)} accused")


if __name__ == "__main__":
    default = os.environ.get("OUT") or Path(__file__).parents[1] / "results"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", default=Path(default))
    sys.exit(main(**vars(parser.parse_args())))
