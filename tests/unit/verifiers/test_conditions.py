"""The order of further conditions, and how many of them there is time for."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.model.task import Task
from optiml_magic.problem import Problem, prepare
from optiml_magic.verifiers.conditions import Conditions
from optiml_magic.verifiers.purse import Purse

TEXT = """#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, float a, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) out[i] = a * x[i];
}
"""


def problem(n: int = 5000) -> Problem:
    x = np.random.default_rng(0).uniform(1, 2, n).astype(np.float32)
    values: dict[str, Any] = {"x": x, "a": np.float32(3), "n": n}
    return prepare(Task(TEXT, lambda x, a: a * x, values), seeds=1)


def test_what_catches_the_most_comes_first() -> None:
    conditions = Conditions(problem(), "emulated:h200")
    small = conditions.small()
    assert [c.name for c in small[:5]] == ["n = 257", "n = 1", "n = 33", "n = 3", "n = 2"]
    assert sorted(c.place for c in small) == list(range(1, len(small) + 1))
    at = conditions.at_small(small[0])
    assert [c.name.removeprefix("n = 257, ") for c in at[:4]] == [
        "inputs of mixed signs",
        "inputs x 3",
        "float scalars x 0.7",
        "inputs x 0.01, float scalars x 0.7",
    ]
    large = [c.name for c in conditions.large()]
    assert large[:3] == ["inputs of mixed signs", "n = 4999", "inputs x 3"]
    assert len(set(large)) == len(large) == 12


def test_larger_sizes_come_third_where_the_task_is_measured_at_such() -> None:
    def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
        return {"x": rng.uniform(1, 2, n).astype(np.float32), "a": np.float32(3), "n": n}

    task = Task(TEXT, lambda x, a: a * x, inputs, sizes={"n": 5000}, verify_sizes={"n": 100})
    large = Conditions(prepare(task, seeds=1), "emulated:h200").large()
    assert [(c.name, c.work) for c in large[:4]] == [
        ("inputs of mixed signs", 1), ("n = 97", 1), ("n = 401", 16), ("inputs x 3", 1),
    ]  # fmt: skip


def test_large_arrays_are_left_to_the_device_and_small_ones_are_not() -> None:
    for n, shared in ((5000, False), (300_000, True)):
        of = problem(n)
        change = next(c for c in Conditions(of, "emulated:h200").large() if "signs" in c.name)
        made = of.instance(change.draw(), change.name, "key", change.maps)
        x, out = made.case.buffers
        assert (x.array is of.first.case.buffers[0].array) == shared
        assert (x.map is not None) == (x.digest is not None) == shared
        wanted = np.asarray(out.expected, np.float64)
        assert np.allclose(np.abs(wanted), 3 * np.abs(of.first.values["x"]))
        assert 0.4 < (wanted < 0).mean() < 0.6


def test_a_purse_is_empty_when_one_more_would_not_end_in_time() -> None:
    assert Purse(100.0).affords
    assert not Purse(100.0, each=101.0).affords
    spent = Purse(-1.0)
    assert not spent.affords
