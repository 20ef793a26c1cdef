"""Code of the task's own that does not end by itself."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from optiml_magic import Settings, Task, optimize
from optiml_magic.problem.limited import OutOfTime, limited

ROUNDS = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const int* times, float* out, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int j = 0; j < times[i] && j < 1000; ++j) s += x[i];
    out[i] = s;
}
"""


def test_what_ends_in_time_is_left_alone() -> None:
    with limited(30.0):
        assert sum(range(1000)) == 499500


def test_an_endless_loop_ends_in_any_thread() -> None:
    found: list[str] = []

    def loop() -> None:
        try:
            with limited(0.05):
                while True:
                    pass
        except OutOfTime:
            found.append("ended")

    loop()
    other = threading.Thread(target=loop)
    other.start()
    other.join(20)
    assert found == ["ended", "ended"]


def test_one_that_would_come_too_late_does_not_come() -> None:
    for _ in range(200):
        try:
            with limited(1e-4):
                time.sleep(1e-4)
        except OutOfTime:
            continue
    assert sum(range(100_000)) == 4999950000  # nothing is raised here any more


@pytest.mark.timeout(180)
def test_a_reference_that_large_integers_keep_busy_is_given_up() -> None:
    def reference(x: np.ndarray, times: np.ndarray) -> np.ndarray:
        out = np.zeros(len(x))
        for j in range(int(times.max()) * 10_000_000 if times.max() > 50 else int(times.max())):
            out += np.where(j < times, x, 0)
        return out

    rng = np.random.default_rng(0)
    inputs = {"x": rng.random(96, dtype="f4"), "times": rng.integers(1, 9, 96, dtype="i4"), "n": 96}
    task = Task(ROUNDS, reference, inputs, outputs={"out": "f4[n]"})
    found = optimize(task, Settings(device="emulated", llm="none", budget=1, experience="none"))
    assert found.summary.root.evaluation.verdict.passed
