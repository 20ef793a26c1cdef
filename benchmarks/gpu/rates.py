"""How many complete evaluations a minute a search makes on a GPU, and where its seconds go.

    python benchmarks/gpu/rates.py FOLDER [NAME ...] [--seconds N] [--budget N] [--device DEVICE]

Four tasks stress what evaluations pay for: data (256 MB streamed), a slow reference (16 Mi
elements), contended atomics, quadratic work; beside them the quickstart's three. Each is searched
in a process of its own, in one home, by rules alone; the first one also measures the roofs.
FOLDER/rates.jsonl has a line a search:
seconds by stage, when each stage began, complete evaluations (verified and timed, no duplicates),
how many ncu counted, the first one's time, and the wall time beside the limit.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optiml_magic.devices import probe
from optiml_magic.model.task import Task

Array = NDArray[Any]

_STREAM = """\
__global__ void scale_columns(const float* x, const float* s, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    int col = blockIdx.y;
    if (row < rows)
        out[(size_t)row * cols + col] = s[col] * x[(size_t)row * cols + col];
}
"""
_ROWS = """\
__global__ void norm_gelu(const float* x, float* out, int rows, int cols) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float mean = 0.0f, var = 0.0f;
    for (int c = 0; c < cols; ++c) mean += x[row * cols + c];
    mean /= cols;
    for (int c = 0; c < cols; ++c) {
        float d = x[row * cols + c] - mean;
        var += d * d;
    }
    float scale = rsqrtf(var / cols + 1e-5f);
    for (int c = 0; c < cols; ++c) {
        float v = (x[row * cols + c] - mean) * scale;
        out[row * cols + c] = 0.5f * v * (1.0f + tanhf(0.7978846f * (v + 0.044715f * v * v * v)));
    }
}
"""
_BINS = """\
__global__ void count_bins(const int* keys, int* counts, int n, int bins) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&counts[keys[i] % bins], 1);
}
"""
_PAIRS = """\
__global__ void potentials(const float* x, const float* y, const float* q, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = 0; j < n; ++j) {
        float dx = x[j] - x[i], dy = y[j] - y[i];
        sum += q[j] * rsqrtf(dx * dx + dy * dy + 0.01f);
    }
    out[i] = sum;
}
"""


def norm_gelu(x: Array) -> Array:
    wide = x.astype(np.float64)
    v = (wide - wide.mean(1, keepdims=True)) / np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    return 0.5 * v * (1 + np.tanh(0.7978846 * (v + 0.044715 * v**3)))  # type: ignore[no-any-return]


def potentials(x: Array, y: Array, q: Array) -> Array:
    wide = [a.astype(np.float64) for a in (x, y, q)]
    found = np.empty(len(x))
    for at in range(0, len(x), 256):
        dx, dy = (w[None, :] - w[at : at + 256, None] for w in wide[:2])
        found[at : at + 256] = (wide[2] / np.sqrt(dx * dx + dy * dy + 0.01)).sum(1)
    return found


def tasks() -> dict[str, Task]:
    """The four tasks, by what they stress; inputs are drawn at the first use."""
    rng = np.random.default_rng(0)

    def uniform(*shape: int) -> Array:
        return rng.uniform(-1.0, 1.0, shape).astype(np.float32)

    head = "#pragma optiml launch "
    return {
        "data": Task(
            head + "scale_columns grid(cdiv(rows, 256), cols) block(256)\n" + _STREAM,
            reference=lambda x, s: x * s,
            inputs={
                "x": uniform(8192, 4096), "s": uniform(4096), "rows": 8192, "cols": 4096,
                "out": np.zeros((8192, 4096), np.float32),
            },
        ),
        "reference": Task(
            head + "norm_gelu grid(cdiv(rows, 128)) block(128)\n" + _ROWS,
            reference=norm_gelu,
            inputs={
                "x": uniform(16384, 1024), "rows": 16384, "cols": 1024,
                "out": np.zeros((16384, 1024), np.float32),
            },
        ),
        "atomics": Task(
            head + "count_bins grid(cdiv(n, 256)) block(256)\n" + _BINS,
            reference=lambda keys, bins: np.bincount(keys % bins, minlength=bins).astype(np.int32),
            inputs={
                "keys": rng.integers(0, 1 << 20, 1 << 22, dtype=np.int32), "bins": 16,
                "n": 1 << 22, "counts": np.zeros(16, np.int32),
            },
        ),
        "quadratic": Task(
            head + "potentials grid(cdiv(n, 256)) block(256)\n" + _PAIRS,
            reference=potentials,
            inputs={
                "x": uniform(16384), "y": uniform(16384), "q": uniform(16384), "n": 16384,
                "out": np.zeros(16384, np.float32),
            },
        ),
    }  # fmt: skip


QUICKSTART = ("transpose_naive", "matmul_naive", "row_sum_naive")
NAMES = (*QUICKSTART, "atomics", "quadratic", "data", "reference")


def task(name: str) -> Task:
    """A task by its name here."""
    from optiml_magic.testing.kernels import known_task

    return known_task(name) if name in QUICKSTART else tasks()[name]


def searched(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """One search in this process."""
    from optiml_magic.optimize import optimize
    from optiml_magic.settings import resolve
    from optiml_magic.timings import Timings

    made = task(name)
    began = time.monotonic()
    line: list[tuple[float, str]] = []
    seen: list[float] = []
    settings = resolve(
        {
            "device": options.device, "llm": "none", "budget": options.budget,
            "seconds": options.seconds, "experience": "none", "home": str(options.home),
        }
    )  # fmt: skip
    result = optimize(
        made,
        settings,
        progress=lambda *_: seen.append(time.monotonic() - began),
        timings=Timings(lambda stage: line.append((round(time.monotonic() - began, 3), stage))),
    )
    wall, summary = time.monotonic() - began, result.summary
    steps = summary.trajectory.steps
    complete = [s for s in steps if s.evaluation.measurement and s.evaluation.verdict.passed]
    complete = [s for s in complete if s.evaluation.duplicate_of is None]
    counted = [
        s for s in complete
        if s.evaluation.measurement
        and any(m.source == "ncu" for m in s.evaluation.measurement.metrics)
    ]  # fmt: skip
    after = len(complete) - 1
    return {
        "name": name,
        "seconds": options.seconds,
        "wall_s": round(wall, 2),
        "first_s": round(seen[0], 2),
        "searched_s": round(seen[-1] - seen[0], 2),
        "evaluations": len(steps),
        "complete": len(complete),
        "counted": len(counted),
        "a_minute": round(60 * after / (seen[-1] - seen[0]), 1) if after else 0.0,
        "speedup": result.speedup,
        "best": summary.winner.candidate.proposal.title,
        "stopped": summary.trajectory.stopped,
        "timings": {stage: round(s, 2) for stage, s in summary.timings.items()},
        "spent": [round(s.evaluation.seconds_spent, 2) for s in steps],
        "notes": list(summary.notes),
        "line": line,
    }


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--seconds", type=float, default=45.0)
    parser.add_argument("--budget", type=int, default=1000)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--home", type=Path)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.home = options.home or options.folder.resolve() / "home"
    if options.worker:
        if not options.device.startswith("emulated"):
            probe.begin()  # the command line begins more: early.py
        print(json.dumps(searched(options.names[0], options)))
        return 0
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from benchmarks.gpu.machine import gpu, versions

    options.folder.mkdir(parents=True, exist_ok=True)
    kept = options.folder / "rates.jsonl"
    about = {
        "command": " ".join(["python benchmarks/gpu/rates.py", *arguments]),
        "date": time.strftime("%Y-%m-%d"),
        "versions": versions(),
        "gpu": "" if options.device.startswith("emulated") else gpu(),
    }
    failed = 0
    for name in options.names:
        given = ["--seconds", options.seconds, "--budget", options.budget]
        given += ["--device", options.device, "--home", options.home]
        command = [sys.executable, __file__, options.folder, name, "--worker", *given]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        row = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else {}
        failed += not row
        row = row or {"name": name, "error": done.stderr[-1500:]}
        with kept.open("a") as file:
            file.write(json.dumps({**row, **about}) + "\n")
        left_out = ("line", "notes", "spent")
        print(json.dumps({k: v for k, v in row.items() if k not in left_out}), flush=True)
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
