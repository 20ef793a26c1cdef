"""The cheats on a real card: rejected for the right reason, or left with nothing to gain."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from cheating import Judges, outcome_of

from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once
from optiml_magic.settings import resolve
from optiml_magic.testing.cheats import NAMES, cheat

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

        def settled(x):
            return 1 + (x - 1) * 0.999**2000

        task = Task(text, reference=settled, inputs={"x": x, "n": x.size}, rtol=1e-3)
        evaluation = evaluate_once(task, resolve({"device": "cuda"})).evaluation
        assert evaluation.measurement is not None, evaluation.verdict
        seconds[use] = evaluation.measurement.seconds
    assert seconds["1"] > 0.8 * seconds["0"]


def test_a_time_below_the_memory_roof_is_suspicious() -> None:
    text = """\
#pragma optiml launch k grid(cdiv(cols, 256), rows) block(256)
__global__ void k(const int* a, int* out, int rows, int cols) {
    int row = blockIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows && col < cols) atomicMax(&out[row], a[row * cols + col]);
}
"""
    one = text.replace("a[row * cols + col]", "a[col]").replace("row < rows", "row < rows")
    lazy = one.replace("atomicMax(&out[row], a[col])", "if (col == 0) out[row] = a[0]")
    first = "#pragma optiml init(out) = 0\n"
    rows, cols = 1 << 12, 1 << 14

    def inputs(rng, rows, cols):  # the largest of each row is its first, whatever the seed
        a = np.tile(rng.integers(0, 90, (1, cols), dtype=np.int32), (rows, 1))
        a[:, 0] = 99
        return {"a": a}

    task = Task(
        first + text, reference=lambda a: a.max(axis=1), inputs=inputs,
        sizes={"rows": rows, "cols": cols},
    )  # fmt: skip
    settings = resolve({"device": "cuda"})
    verdict = evaluate_once(task, settings, program=first + lazy).evaluation.verdict
    assert verdict.outcome == "suspicious", verdict
    assert "TB/s" in verdict.summary
