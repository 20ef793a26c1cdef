"""On a machine with a GPU: what ncu counts beside what the emulator counts, and what a fault costs.

    python benchmarks/gpu/evidence.py OUT.json

First the known kernels, global sectors by both; then faults in turn, each with its verdict, the
time it took, and the time of the next candidate's evaluation; then a healthy evaluation by parts.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.machine import gpu, versions
from optiml_magic.devices.base import Buffer, Case
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.evaluation import Evaluator, stages
from optiml_magic.evaluation.stages import Context
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.preparation import Prepared
from optiml_magic.problem import prepare
from optiml_magic.profilers.ncu import NcuCounters, Refused
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import NAMES, known_task

SECTORS = [f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum" for op in ("ld", "st")]
GOOD = """\
#pragma optiml launch twice grid(cdiv(n, 128)) block(128)
__global__ void twice(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
"""
FAULTS = {
    "infinite loop": "while (((volatile float*)out)[0] != 12345.0f) {}",
    "out-of-bounds store": "out[i + (1ll << 40)] = 1.0f;",
    "misaligned access": "*(double*)(out + 1) = 1.0;",
    "trap": "if (i == 5) __trap();",
    "syntax error": "int 3x;",
}
RUN_SECONDS = 5.0


def main(out: Path) -> None:
    record: dict[str, Any] = {
        "command": "python benchmarks/gpu/evidence.py OUT.json",
        "date": time.strftime("%Y-%m-%d"),
        "gpu": gpu(),
        "versions": versions(),
        "sectors": sectors(),
        "faults": faults(),
        "healthy": healthy(),
        "transfer_256_mb_seconds": transfer(),
    }
    out.write_text(json.dumps(record, indent=1) + "\n")


def sectors() -> list[dict[str, Any]]:
    rows = []
    print(f"{'kernel':<17} {'ld ncu':>10} {'ld emu':>10} {'st ncu':>10} {'st emu':>10}")
    for name in NAMES:
        row: dict[str, Any] = {"kernel": name}
        for device in ("cuda", "emulated:h200"):
            settings = resolve({"device": device, "verify_seeds": 1})
            evaluation = evaluate_once(known_task(name), settings).evaluation
            measured = evaluation.measurement
            assert measured is not None, evaluation.verdict
            row[device] = [measured.get(metric) for metric in SECTORS]
            row[f"{device} seconds"] = measured.seconds
        rows.append(row)
        (a, b), (c, d) = row["cuda"], row["emulated:h200"]
        print(f"{name:<17} {a!s:>10} {c!s:>10} {b!s:>10} {d!s:>10}", flush=True)
    return rows


def faults() -> list[dict[str, Any]]:
    rows = []
    x = np.random.default_rng(0).uniform(-1, 1, 1000).astype(np.float32)
    task = Task(GOOD, reference=lambda x: 2 * x, inputs={"x": x, "n": 1000})
    problem = prepare(task, seeds=2)
    with session(resolve({"device": "cuda", "run_seconds": RUN_SECONDS})) as members:
        evaluator = Evaluator(problem, members.tools)
        evaluator([candidate(0, GOOD)])
        for number, (name, fault) in enumerate(FAULTS.items(), start=1):
            bad = GOOD.replace("if (i < n)", f"if (i < n) {{ {fault} }}\n    if (i < n)")
            # Machine code of its own, or the evidence of an earlier candidate would be repeated.
            good = GOOD.replace("x[i];", f"x[i] + (i == -{number} ? 1.0f : 0.0f);")
            began = time.perf_counter()
            (evaluation,) = evaluator([candidate(2 * number, bad)])
            ended = time.perf_counter()
            (healthy_one,) = evaluator([candidate(2 * number + 1, good)])
            next_seconds = time.perf_counter() - ended
            assert healthy_one.duplicate_of is None
            row = {
                "fault": name,
                "verdict": str(evaluation.verdict.outcome),
                "seconds": ended - began,
                "next verdict": str(healthy_one.verdict.outcome),
                "next seconds": next_seconds,
            }
            rows.append(row)
            print(row, flush=True)
    return rows


def healthy() -> dict[str, float]:
    """Parts of one evaluation of a naive transpose of 4096 by 4096, three seeds."""
    task = known_task("transpose_naive", rows=4096, cols=4096)
    began = time.perf_counter()
    problem = prepare(task, seeds=3)
    parts = {"inputs and reference": time.perf_counter() - began}
    [instance.case for instance in problem.instances]
    with session(resolve({"device": "cuda"}), counted=True) as members:
        members.begin(problem)
        tools = members.tools
        began = time.perf_counter()
        evaluator = Evaluator(problem, tools)
        context = Context.of(problem, tools, exact=False, thorough=False)
        prepared = stages.prepare(problem.program.text, context)
        assert isinstance(prepared, Prepared), prepared
        parts["compile"] = time.perf_counter() - began
        began = time.perf_counter()
        evaluator([candidate(0, problem.program.text)])
        started = "first evaluation, host start, transfer and ncu included"
        parts[started] = time.perf_counter() - began
        job, build = context.job(prepared), prepared.build
        began = time.perf_counter()
        tools.device.execute(build, job)
        parts["one verifying run"] = time.perf_counter() - began
        began = time.perf_counter()
        tools.profiler.measure(build, job)
        parts["timing against the baseline"] = time.perf_counter() - began
    cases = [instance.case for instance in problem.instances]
    with closing(NcuCounters(members.choice.name, cases)) as counters:
        for count in (1, 16):
            began = time.perf_counter()
            counted = counters.count([(build, job)] * count)
            assert not isinstance(counted, Refused), counted.reason
            parts[f"ncu, a batch of {count}"] = time.perf_counter() - began
    print(parts, flush=True)
    return parts


def transfer() -> float:
    """Putting 256 MB of inputs onto a running host."""
    device = HostedDevice("cuda:0", seconds=60)
    small = Case("small", (Buffer("x", "input", np.zeros(16, np.float32)),))
    device.put(small)
    device._running()  # noqa: SLF001
    large = Case("large", (Buffer("x", "input", np.ones(64 << 20, np.float32)),))
    began = time.perf_counter()
    device.put(large)
    seconds = time.perf_counter() - began
    device.close()
    print(f"256 MB in {seconds:.2f} s", flush=True)
    return seconds


def candidate(number: int, text: str) -> Candidate:
    return Candidate(number, None, Proposal(text, "", "evidence"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    main(**vars(parser.parse_args()))
