"""The cheats on a real card: rejected for the right reason, or left with nothing to gain."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from optiml_magic.testing.cheats import NAMES, cheat
from tests.cheating import Judges, outcome_of

pytestmark = pytest.mark.gpu

# Honest where nothing was noted before; a later launch would find the answer in its scratch.
NOTED = """\
#pragma optiml scratch kept f4[2 * n]
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const float* x, float* out, float* kept, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float y = x[i];
    if (kept[2 * i] == y && USE) { out[i] = kept[2 * i + 1]; return; }
    for (int t = 0; t < 2000; ++t) y = 0.999f * y + 0.001f;
    kept[2 * i] = x[i];
    kept[2 * i + 1] = y;
    out[i] = y;
}
"""


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    with Judges("cuda:0") as found:
        yield found


@pytest.mark.parametrize("name", [n for n in NAMES if cheat(n).device != "emulated"])
def test_a_cheat_is_rejected_and_its_twin_passes(judges: Judges, name: str) -> None:
    pair = cheat(name)
    rejected = outcome_of(judges, pair.task, pair.text)
    assert pair.rejects(rejected), rejected
    accepted = outcome_of(judges, pair.task, pair.twin)
    assert accepted.passed, accepted


def test_what_an_earlier_launch_noted_gains_nothing() -> None:
    seconds = {}
    for use in ("0", "1"):
        text = NOTED.replace("USE", use)
        x = np.random.default_rng(0).uniform(0.5, 1.5, 1 << 20).astype(np.float32)

        def settled(x: np.ndarray) -> np.ndarray:
            return 1 + (x - 1) * 0.999**2000

        task = Task(text, reference=settled, inputs={"x": x, "n": x.size}, rtol=1e-3)
        evaluation = evaluate_once(task, resolve({"device": "cuda"})).evaluation
        assert evaluation.measurement is not None, evaluation.verdict
        seconds[use] = evaluation.measurement.seconds
    assert seconds["1"] > 0.8 * seconds["0"]


SUMS = """\
#pragma optiml launch k grid(rows) block(256)
__global__ void k(const int* a, int* out, int rows, int cols) {
    __shared__ int total;
    int row = blockIdx.x, sum = 0;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    for (int col = threadIdx.x; col < cols; col += blockDim.x) sum += a[row * cols + col];
    atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x == 0) out[row] = total;
}
"""


def test_a_time_below_the_memory_roof_is_suspicious() -> None:
    def inputs(
        rng: np.random.Generator, rows: int, cols: int
    ) -> dict[str, Any]:  # all rows are alike, whatever the seed
        return {"a": np.tile(rng.integers(0, 99, (1, cols), dtype=np.int32), (rows, 1))}

    task = Task(
        SUMS, reference=lambda a: a.sum(axis=1, dtype=np.int32), inputs=inputs,
        sizes={"rows": 1 << 13, "cols": 1 << 12},
    )  # fmt: skip
    settings = resolve({"device": "cuda"})
    honest = evaluate_once(task, settings, program=SUMS.replace("256", "128"))
    assert honest.evaluation.verdict.passed, honest.evaluation.verdict
    lazy = SUMS.replace("a[row * cols + col]", "a[col]")
    verdict = evaluate_once(task, settings, program=lazy).evaluation.verdict
    assert verdict.outcome == "suspicious", verdict
    assert "TB/s" in verdict.summary
