"""How well a reported time repeats: the same kernels timed again and again in fresh processes.

    python benchmarks/gpu/repeat.py OUT.jsonl [SECONDS] [DEVICE]

Each process is a device host as every search starts one, asked by the profiler of every search: the
kernel as two runs, A B B A, until the interval of their ratio is narrow. It times all kernels in
turn, each time another one first, and is one line of OUT.jsonl with raw samples, clocks and
temperature. 30 processes; after SECONDS (150) it stops, and the same command goes on. Kernels are
compiled and inputs made once, outside of these processes.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.gpu.machine import gpu, versions
from optiml_magic.devices.base import Fault, Job, Sampling, Timing
from optiml_magic.devices.hosted import HostedDevice
from optiml_magic.model.build import Build
from optiml_magic.model.measurement import Measurement
from optiml_magic.preparation import Preparation, Prepared
from optiml_magic.problem import Problem, prepare
from optiml_magic.profilers.events import EventsProfiler
from optiml_magic.session import Session, session
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from optiml_magic.timings import Timings
from optiml_magic.verifiers.trials import Trials

# A stream, a matrix product bound by arithmetic and shared memory, a reduction, and both in one;
# 25 us to 1 ms on an H200.
KERNELS: dict[str, dict[str, int]] = {
    "saxpy": {"n": 1 << 24},
    "matmul_tiled": {"m": 1024, "n": 1024, "k": 1024},
    "row_sum": {"rows": 16384, "cols": 2048},
    "softmax": {"rows": 8192, "cols": 2048},
}
PROCESSES = 30
TARGET = 0.01


class Recording(HostedDevice):
    """A device host that keeps what it last timed."""

    timings: tuple[Timing, ...] = ()

    def time(
        self, runs: Sequence[tuple[Build, Job]], sampling: Sampling
    ) -> tuple[Timing, ...] | Fault:
        found = super().time(runs, sampling)
        self.timings = () if isinstance(found, Fault) else found
        return found


def main(out: Path, seconds: float, device: str) -> None:
    until = time.monotonic() + seconds
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    with session(resolve({"device": device})) as members:
        problems = {name: prepare(known_task(name, **KERNELS[name]), seeds=1) for name in KERNELS}
        runs = {name: run(problem, members) for name, problem in problems.items()}
        print(f"prepared; {PROCESSES - len(rows)} processes to go", flush=True)
        card = "" if members.choice.is_emulated else gpu()
        longest = 0.0
        for number in range(len(rows), PROCESSES):
            if time.monotonic() + longest > until:
                print("time is up: run it again to go on")
                break
            row = {"gpu": card, "versions": versions(), "date": time.strftime("%Y-%m-%d"),
                   **in_a_fresh_process(number, problems, runs, members)}  # fmt: skip
            longest = max(longest, row["wall_seconds"])
            rows.append(row)
            with out.open("a") as file:
                file.write(json.dumps(row) + "\n")
    summarise(rows)


def run(problem: Problem, members: Session) -> tuple[Build, Job]:
    """The input kernel at the given sizes, as an evaluation would time it."""
    tools = members.tools
    trials = Trials(problem, tools.device, tools.instructions)
    preparation = Preparation(problem, tools.compiler, tools.options, tools.chip, trials, Timings())
    prepared = preparation(problem.program.text, problem.instances)
    assert isinstance(prepared, Prepared), prepared
    instance, plan = prepared.plans[0]
    return prepared.build, Job(instance.case.key, plan, 0, False, tools.instructions)


def in_a_fresh_process(
    number: int,
    problems: dict[str, Problem],
    runs: dict[str, tuple[Build, Job]],
    members: Session,
) -> dict[str, Any]:
    began = time.monotonic()
    host = Recording(members.choice.name, seconds=60.0)
    names = list(runs)
    kernels = {}
    try:
        for at in range(len(names)):
            name = names[(at + number) % len(names)]
            host.put(problems[name].instances[0].case)
            kernels[name] = timed(host, members, runs[name])
    finally:
        host.close()
    row = {
        "process": number,
        "device": members.choice.name,
        "wall_seconds": time.monotonic() - began,
        "kernels": kernels,
    }
    times = ", ".join(f"{name} {kernels[name]['seconds'] * 1e6:.3f} us" for name in names)
    print(f"{number:2} in {row['wall_seconds']:.1f} s: {times}", flush=True)
    return row


def timed(host: Recording, members: Session, one: tuple[Build, Job]) -> dict[str, Any]:
    """What the profiler reports of a kernel, with the samples behind it."""
    began = time.monotonic()
    profiler = EventsProfiler(host, members.choice.chip)
    measured = profiler.measure(*one)
    assert isinstance(measured, Measurement), measured
    assert profiler.itself is not None
    assert measured.conditions is not None
    return {
        "seconds": measured.seconds,
        "ratio_error": measured.ratio_error,
        "itself": asdict(profiler.itself),
        "launches": [timing.launches for timing in host.timings],
        "samples": [list(timing.samples) for timing in host.timings],
        "conditions": asdict(measured.conditions),
        "wall_seconds": time.monotonic() - began,
    }


def spread(values: Sequence[float]) -> dict[str, float]:
    """Of the reported medians, each relative to their own median."""
    middle = statistics.median(values)
    quarters = statistics.quantiles(values, n=4)
    return {
        "range": (max(values) - min(values)) / middle,
        "variation": statistics.stdev(values) / middle,
        "quartiles": (quarters[2] - quarters[0]) / middle,
    }


def summarise(rows: Sequence[dict[str, Any]]) -> None:
    if len(rows) < 2:
        return
    print(f"{'kernel':<14} {'median':>11} {'range':>8} {'variation':>10} {'quartiles':>10} "
          f"{'itself beyond 1 %':>18}  clock and temperature")  # fmt: skip
    for name in KERNELS:
        kernels = [row["kernels"][name] for row in rows]
        found = spread([kernel["seconds"] for kernel in kernels])
        beyond = sum(
            kernel["itself"]["low"] > 1 + TARGET or kernel["itself"]["high"] < 1 - TARGET
            for kernel in kernels
        )
        print(
            f"{name:<14} {statistics.median(k['seconds'] for k in kernels) * 1e6:8.2f} us "
            f"{found['range']:8.2%} {found['variation']:10.2%} {found['quartiles']:10.2%} "
            f"{f'{beyond} of {len(rows)}':>18}  {conditions(kernels)}"
        )
    worst = max(spread([row["kernels"][n]["seconds"] for row in rows])["range"] for n in KERNELS)
    each = statistics.median(row["wall_seconds"] for row in rows)
    print(f"{len(rows)} fresh processes, {each:.1f} s each")
    print(f"largest range of a reported median: {worst:.2%}; the target is {TARGET:.0%}")


def conditions(kernels: Sequence[dict[str, Any]]) -> str:
    clocks = [kernel["conditions"]["sm_clock"] for kernel in kernels]
    states = [kernel["conditions"]["after"] for kernel in kernels if kernel["conditions"]["after"]]
    if not states:
        return f"not read: {kernels[0]['conditions']['absent']}"
    heat = [state["temperature"] for state in states]
    limits = sorted({limit for state in states for limit in state["limits"]})
    return f"{min(clocks):.0f} to {max(clocks):.0f} MHz, {min(heat)} to {max(heat)} C" + (
        f", {', '.join(limits)}" if limits else ""
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("seconds", type=float, nargs="?", default=150.0)
    parser.add_argument("device", nargs="?", default="cuda:0")
    main(**vars(parser.parse_args()))
