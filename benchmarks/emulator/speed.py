"""How fast the emulated device is, what counting costs, how it scales, what memory it takes.

    python benchmarks/emulator/speed.py                  # prints the tables
    python benchmarks/emulator/speed.py --write          # and keeps the raw samples in results/

Speed is in executed thread instructions of PTX (active lanes) per second of a launch on one core,
counters on: the set-up of its records is in it, compilation and comparison are not. A figure is the
median of launches that run in turn with those it is compared with: counters off, two threads. Every
answer is verified first. Another process on the same cores halves every figure here, so the load
before and after is kept with the samples.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib import metadata
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np

from optiml_magic import emulator
from optiml_magic.devices.base import Job
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.evaluation import stages
from optiml_magic.evaluation.stages import Context
from optiml_magic.model.build import Build
from optiml_magic.model.launch import BufferArgument, LaunchPlan
from optiml_magic.model.task import Task
from optiml_magic.preparation import Prepared
from optiml_magic.problem import Instance, prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

RESULTS = Path(__file__).parents[1] / "results" / "emulator-speed.json"
BUDGET = 10**12
ROUNDS = 5
COLLATZ = """\
#pragma optiml launch collatz grid(cdiv(n, 256)) block(256)
__global__ void collatz(const unsigned* start, unsigned* steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned x = start[i], count = 0;
    while (x != 1) {
        if (x & 1) x = 3 * x + 1;
        else x >>= 1;
        count++;
    }
    steps[i] = count;
}
"""


def collatz(start: Any) -> Any:
    x, steps = start.astype(np.uint64), np.zeros(start.size, np.uint32)
    while (going := x != 1).any():
        x = np.where(going, np.where(x % 2, 3 * x + 1, x // 2), 1)
        steps += going
    return steps


def _starts(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"start": rng.integers(1, 100_000, n, dtype=np.uint32)}  # none overflows 32 bits


TASKS = {
    "tiled matmul 512": known_task("matmul_tiled", m=512, n=512, k=512),
    "naive matmul 256": known_task("matmul_naive"),
    "naive transpose 2048": known_task("transpose_naive", rows=2048, cols=2048),
    "tiled transpose 2048": known_task("transpose_tiled", rows=2048, cols=2048),
    "row sum 4096 x 1024": known_task("row_sum", rows=4096, cols=1024),
    "softmax 2048 x 1000": known_task("softmax", rows=2048, cols=1000),
    "divergent loop (Collatz)": Task(
        COLLATZ, reference=collatz, inputs=_starts, sizes={"n": 1 << 17}, name="collatz"
    ),
    "histogram 4 M": known_task("histogram", n=1 << 22),
}
MEMORY_TASK = known_task("transpose_naive", rows=2048, cols=4096)  # 32 MB in, 32 MB out


@dataclass(frozen=True)
class Ready:
    """One task, verified, with its arrays laid out; ``launch`` runs its one kernel."""

    build: Build
    plan: LaunchPlan
    module: emulator.Module
    memory: emulator.Memory
    addresses: dict[str, int]

    def launch(self, *, count: bool, threads: int) -> Any:
        (launch,) = self.plan.launches
        arguments = [
            self.addresses[a.buffer].to_bytes(8, "little")
            if isinstance(a, BufferArgument)
            else bytes.fromhex(a.raw)
            for a in launch.arguments
        ]
        run = self.module.launch(
            launch.kernel,
            launch.grid,
            launch.block,
            dynamic_shared=launch.shared,
            arguments=arguments,
            memory=self.memory,
            limits=emulator.Limits(BUDGET, threads),
            count=count,
        )
        assert run.fault is None, run.fault
        return run.counters


def compiled(task: Task) -> tuple[Build, Instance, LaunchPlan]:
    """The task's build, inputs and launches; its answer was compared with the reference."""
    settings = resolve({"device": "emulated:h200", "verify_seeds": 1})
    problem = prepare(task, seeds=1)
    with session(settings, task=task) as members:
        tools = replace(members.tools, instructions=BUDGET)
        context = Context.of(problem, tools, exact=False, thorough=False)
        prepared = stages.prepare(problem.program.text, context)
        assert isinstance(prepared, Prepared), prepared
        verdict = stages.verify(prepared, context)
    assert verdict.passed, verdict
    ((instance, plan),) = prepared.plans
    return prepared.build, instance, plan


def ready(task: Task) -> Ready:
    build, instance, plan = compiled(task)
    memory, addresses = emulator.Memory(), {}
    for buffer in instance.case.buffers:
        addresses[buffer.name] = memory.allocate(buffer.array.nbytes)
        raw = np.ascontiguousarray(buffer.array).reshape(-1).view(np.uint8)
        memory.view(addresses[buffer.name])[:] = raw if buffer.role != "output" else 0
    return Ready(build, plan, emulator.load(build.ptx), memory, addresses)


def seconds(function: Callable[[], object], least: float) -> list[float]:
    """Samples of one call each, for at least that long."""
    samples: list[float] = []
    end = time.perf_counter() + least
    while not samples or time.perf_counter() < end:
        began = time.perf_counter()
        function()
        samples.append(time.perf_counter() - began)
    return samples


def speed(name: str, task: Task, least: float) -> dict[str, Any]:
    found = ready(task)
    work = found.launch(count=True, threads=1).thread_instructions
    runs = {
        "one core, counters on": (True, 1),
        "one core, counters off": (False, 1),
        "two threads, counters on": (True, 2),
    }
    samples: dict[str, list[float]] = {key: [] for key in runs}
    for _ in range(ROUNDS):  # in turn, so that drift of the machine falls on all alike
        for key, (count, threads) in runs.items():
            share = least / ROUNDS / len(runs)
            samples[key] += seconds(partial(found.launch, count=count, threads=threads), share)
    on, off, two = (statistics.median(samples[key]) for key in runs)
    loads = translation(found.build)
    cold, warm = (1e3 * statistics.median(loads[key]) for key in ("cold", "warm"))
    rate = work / on / 1e9
    print(
        f"{name:<25} {work / 1e6:9.1f} {rate:9.2f} {on / off:9.2f} {on / two:9.2f} "
        f"{cold:9.0f} {warm:9.0f}",
        flush=True,
    )
    return {
        "kernel": name,
        "thread_instructions": work,
        "giga_instructions_per_second": rate,
        "counting_ratio": on / off,
        "two_threads_speedup": on / two,
        "load_cold_milliseconds": cold,
        "load_warm_milliseconds": warm,
        "samples_seconds": {**samples, **{f"load, {k}": v for k, v in loads.items()}},
    }


def translation(build: Build) -> dict[str, list[float]]:
    """Seconds from PTX to machine code: nothing kept, and with the object code on disk."""
    with tempfile.TemporaryDirectory() as folder:
        objects = Path(folder)
        emulator.load(build.ptx, objects=objects)
        return {
            "cold": [s for _ in range(3) for s in seconds(lambda: emulator.load(build.ptx), 0)],
            "warm": [
                s
                for _ in range(9)
                for s in seconds(lambda: emulator.load(build.ptx, objects=objects), 0)
            ],
        }


def memory() -> dict[str, Any]:
    """Resident memory of a device host with 64 MB of arrays, counters on, at its highest."""
    build, instance, plan = compiled(MEMORY_TASK)
    device = HostedDevice("emulated:h200")
    try:
        device.put(instance.case)
        execution = device.execute(build, Job(instance.case.key, plan, 0, True, BUDGET))
        assert execution.fault is None
        pid = device._running()._process.pid  # noqa: SLF001
        status = Path(f"/proc/{pid}/status").read_text()
    finally:
        device.close()
    found = {k: int(v) / 1024 for k, v in re.findall(r"(VmHWM|VmRSS):\s+(\d+) kB", status)}
    arrays = sum(buffer.array.nbytes for buffer in instance.case.buffers) / 2**20
    print(f"\n{arrays:.0f} MB of arrays: {found['VmHWM']:.0f} MB resident at the most", flush=True)
    return {"arrays_mb": arrays, "resident_peak_mb": found["VmHWM"], "resident_mb": found["VmRSS"]}


def about(arguments: list[str]) -> dict[str, Any]:
    versions = ("numpy", "llvmlite", "nvidia-cuda-nvrtc")
    return {
        "command": " ".join(["python", "benchmarks/emulator/speed.py", *arguments]),
        "date": time.strftime("%Y-%m-%d"),
        "hardware": f"{processor()}, {os.cpu_count()} cores, for {llvm.get_host_cpu_name()}",
        "versions": {name: metadata.version(name) for name in versions},
        "python": platform.python_version(),
        "load_before": os.getloadavg(),
    }


def processor() -> str:
    text = Path("/proc/cpuinfo").read_text() if sys.platform == "linux" else ""
    found = re.search(r"model name\s*:\s*(.+)", text)
    return found[1] if found else platform.processor()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"keep the samples in {RESULTS.name}")
    parser.add_argument("--seconds", type=float, default=6.0, help="of launches for each kernel")
    parser.add_argument("--only", default="", help="kernels whose name holds this")
    options = parser.parse_args()
    record = about(sys.argv[1:])
    print(f"{record['hardware']}; load {record['load_before'][0]:.1f}\n")
    print(f"{'':<25} {'thread':>9} {'G inst/s':>9} {'counters':>9} {'2 threads':>9}", end=" ")
    print(f"{'load, ms':>9} {'load, ms':>9}")
    print(f"{'kernel':<25} {'inst, M':>9} {'one core':>9} {'on / off':>9} {'speed-up':>9}", end=" ")
    print(f"{'cold':>9} {'warm':>9}")
    record["speed"] = [
        speed(name, task, options.seconds) for name, task in TASKS.items() if options.only in name
    ]
    record["memory"] = memory()
    record["load_after"] = os.getloadavg()
    if options.write:
        RESULTS.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
