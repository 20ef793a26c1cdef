"""Faulty kernels and their twins under the emulator's checks, and what the checks cost.

    python benchmarks/emulator/checks.py [OUT.json]

For each pair: the kinds and lines expected, those found, and whether the twin was accused in any of
three orders. Then the known kernels with checks off and on: none may be accused, and the ratio of
their times is the cost.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from optiml_magic import binding
from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Job, Order
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.kernels.exits import early_returns
from optiml_magic.kernels.unit import lift
from optiml_magic.model.build import Build
from optiml_magic.problem import prepare
from optiml_magic.testing import faulty
from optiml_magic.testing.kernels import NAMES, known_task

ORDERS: tuple[Order, ...] = ("forward", "reverse", 1)
SIZES: dict[str, dict[str, int]] = {
    "saxpy": {"n": 1 << 18},
    "transpose_naive": {"rows": 512, "cols": 512},
    "transpose_tiled": {"rows": 512, "cols": 512},
    "matmul_naive": {"m": 128, "n": 128, "k": 128},
    "matmul_tiled": {"m": 128, "n": 128, "k": 128},
    "row_sum_naive": {"rows": 1024, "cols": 512},
}
REPEATS = 5
CHIP = chip("h200")


def main(out: Path | None) -> int:
    with tempfile.TemporaryDirectory() as cache:
        compiler = CachedCompiler(NvrtcCompiler(), Path(cache))
        pairs = [pair(compiler, name) for name in faulty.NAMES]
        costs = [cost(compiler, name) for name in NAMES]
    caught = sum(row["caught"] for row in pairs)
    accused = sum(row["accused"] for row in pairs) + sum(bool(row["hazards"]) for row in costs)
    ratios = [row["ratio"] for row in costs]
    print(f"{caught} of {len(pairs)} faulty kernels caught with the right kind and lines")
    print(f"{accused} of {len(pairs) + len(costs)} correct kernels accused")
    print(
        f"cost: median {statistics.median(ratios):.1f}x, "
        f"from {min(ratios):.1f}x to {max(ratios):.1f}x"
    )
    if out is not None:
        record = {
            "command": "python benchmarks/emulator/checks.py OUT.json",
            "date": time.strftime("%Y-%m-%d"),
            "machine": f"{platform.machine()}, {platform.python_version()}",
            "pairs": pairs,
            "costs": costs,
        }
        out.write_text(json.dumps(record, indent=1) + "\n")
    return 0 if caught == len(pairs) and not accused else 1


def pair(compiler: CachedCompiler, name: str) -> dict[str, Any]:
    example = faulty.faulty(name)
    found = hazards(compiler, example, "forward")
    wanted = {kind: list(lines) for kind, lines in example.expected.items()}
    twins = [hazards(compiler, faulty.twin(name), order) for order in ORDERS]
    row = {
        "kernel": name,
        "expected": wanted,
        "found": found,
        "caught": found == wanted,
        "accused": any(twins),
    }
    words = "; ".join(f"{kind} {' '.join(map(str, lines))}" for kind, lines in wanted.items())
    caught = "caught" if row["caught"] else f"MISSED: {found}"
    print(
        f"{name:<32} {words:<34} {caught}{', twin ACCUSED' if row['accused'] else ''}", flush=True
    )
    return row


def hazards(
    compiler: CachedCompiler, example: faulty.Example, order: Order
) -> dict[str, list[int]]:
    build = compiler.compile(example.text, example.kernels, CHIP, CompileOptions())
    assert isinstance(build, Build), build
    build = replace(build, early_returns=early_returns(lift(example.text)))
    device = EmulatedDevice(CHIP.name)
    device.put(example.case())
    execution = device.execute(build, example.job(build, checks=True, order=order))
    found: dict[str, set[int]] = {}
    for hazard in execution.hazards:
        found.setdefault(hazard.kind, set()).update(hazard.lines)
    return {kind: sorted(lines) for kind, lines in found.items()}


def cost(compiler: CachedCompiler, name: str) -> dict[str, Any]:
    problem = prepare(known_task(name, **SIZES.get(name, {})), seeds=1)
    program, (instance, *_) = problem.program, problem.instances
    source, names = program.compiled_text(), binding.name_expressions(program, problem.interface)
    build = compiler.compile(source, names, CHIP, CompileOptions())
    assert isinstance(build, Build), build
    build = replace(build, early_returns=early_returns(lift(program.text)))
    plan = binding.plan(program, problem.interface, build, instance.values, instance.shapes, CHIP)
    device = EmulatedDevice(CHIP.name)
    device.put(instance.case)
    job = Job(instance.case.key, plan, 0, False, 10**10)
    seconds: dict[bool, list[float]] = {False: [], True: []}
    first: dict[bool, float] = {}
    found: list[str] = []
    for checks in (False, True):
        began = time.perf_counter()
        execution = device.execute(build, replace(job, checks=checks))
        first[checks] = time.perf_counter() - began
        assert execution.fault is None, execution.fault
        found += [f"{h.kind} {h.lines}" for h in execution.hazards]
    for _ in range(REPEATS):
        for checks, samples in seconds.items():
            began = time.perf_counter()
            device.execute(build, replace(job, checks=checks))
            samples.append(time.perf_counter() - began)
    plain, checked = min(seconds[False]), min(seconds[True])
    row = {
        "kernel": name,
        "hazards": found,
        "plain_seconds": seconds[False],
        "checked_seconds": seconds[True],
        "ratio": checked / plain,
        "translation_plain": first[False] - plain,
        "translation_checked": first[True] - checked,
    }
    print(
        f"{name:<18} plain {1e3 * plain:7.1f} ms, checked {1e3 * checked:7.1f} ms, "
        f"{row['ratio']:5.1f}x; translation {row['translation_plain']:.2f} s, "
        f"{row['translation_checked']:.2f} s {'ACCUSED' if found else ''}",
        flush=True,
    )
    return row


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path, nargs="?")
    sys.exit(main(**vars(parser.parse_args())))
