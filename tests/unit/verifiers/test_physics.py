"""What a task needs to read: shown by changing inputs; and a measurement that is below it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from optiml_magic.chips import chip
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.measurement import Bound, Measurement
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.verifiers.physics import Physics, needed

TEXT = (
    "#pragma optiml launch k grid(1) block(64)\n"
    "__global__ void k(const float* x, const int* keep, float* out, int n) { out[0] = x[keep[0]]; }\n"
)
N = 1 << 16
X = np.random.default_rng(0).uniform(1, 2, N).astype(np.float32)
KEEP = np.random.default_rng(1).integers(0, 2, N, dtype=np.int32)
H200 = chip("h200")


def problem(reference, **more):
    task = Task(TEXT, reference=reference, inputs={"x": X, "keep": KEEP, "n": N}, **more)
    return prepare(task, seeds=1)


def measured(seconds: float) -> Measurement:
    return Measurement("h200", "events", seconds, 1.01, (), (Bound("measured", seconds),), ())


def reads(count: int) -> KernelCounters:
    return KernelCounters("k", 1, 1, {}, {}, (), (), 0, count // 32, None, None, None)


@pytest.mark.parametrize(
    ("reference", "share"),
    [
        (lambda x, keep: x + keep, 2.0),
        (lambda x, keep: x, 1.0),
        (lambda x, keep: np.where(keep, x, 0.0), 1.5),
        (lambda x, keep: np.full(1, x.max()), 1.0),
        (lambda x, keep: np.full(1, x[0]), 0.0),
    ],
    ids=["both", "one", "half of one", "a maximum", "one element"],
)
def test_inputs_matter_where_the_answer_changes(reference, share: float) -> None:
    found = needed(problem(reference))
    assert share - 0.4 <= found.read / X.nbytes <= share


def test_a_time_below_the_memory_roof_is_told() -> None:
    physics = Physics(problem(lambda x, keep: x + keep), H200)
    roof = 2 * X.nbytes / H200.dram_bandwidth
    assert physics.shortfall(measured(1.01 * roof)) == ""
    assert "TB/s" in physics.shortfall(measured(0.5 * roof))


def test_a_reader_of_what_matters_alone_is_not_accused() -> None:
    physics = Physics(problem(lambda x, keep: np.full(1, x[0])), H200)
    assert physics.shortfall(measured(1e-6)) == ""


def test_inputs_may_be_smaller_than_those_that_it_is_verified_on() -> None:
    def inputs(rng: np.random.Generator, n: int):
        return {"x": rng.random(n, np.float32), "keep": np.zeros(n, np.int32), "n": n}

    task = Task(TEXT, reference=lambda x, keep: x + keep, inputs=inputs, sizes={"n": 64},
                verify_sizes={"n": 5000})  # fmt: skip
    found = needed(prepare(task, seeds=1))
    assert found.read <= 2 * 64 * 4


def test_declared_bytes_win() -> None:
    roof = 1e9 / H200.dram_bandwidth
    physics = Physics(problem(lambda x, keep: x, bytes=10**9), H200)
    assert physics.shortfall(measured(0.9 * roof))
    assert not physics.shortfall(measured(1.1 * roof))


def test_what_an_array_that_is_added_to_gets_may_be_of_the_declared_bytes() -> None:
    text = TEXT.replace("out[0] =", "out[0] +=")
    inputs = {"x": X, "keep": KEEP, "out": X, "n": N}
    task = Task(text, reference=lambda x, keep, out: out + x, inputs=inputs, bytes=3 * X.nbytes)
    physics = Physics(prepare(task, seeds=1), H200)
    honest = replace(measured(1.0), source="estimated", kernels=(reads(2 * X.nbytes),))
    assert physics.shortfall(honest) == ""
    assert "distinct" in physics.shortfall(replace(honest, kernels=(reads(X.nbytes),)))


def test_operations_above_the_peak_are_a_note() -> None:
    physics = Physics(problem(lambda x, keep: x, flops=10**12), H200)
    assert "peak" in physics.note(measured(1e-3))
    assert physics.note(measured(1.0)) == ""
    assert physics.note(replace(measured(1e-3), source="estimated")) == ""
