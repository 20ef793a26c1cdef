"""A reference that is slow: what it would cost is foreseen, and the task fitted to the seconds."""

from __future__ import annotations

import itertools
import time
from typing import Any

import numpy as np
import pytest

from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.problem.references import References
from optiml_magic.verifiers.physics import needed

TEXT = """#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * 64 + threadIdx.x;
    if (i < n) out[i] = 2.0f * x[i];
}
"""
N = 1 << 16


def drawn(rng: np.random.Generator, n: int) -> dict[str, Any]:
    return {"x": rng.uniform(1, 2, n).astype(np.float32), "n": n}


def given() -> dict[str, Any]:
    return drawn(np.random.default_rng(0), N)


class Reference:
    """Twice the input; told to take so many seconds for the power of the size."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, x: Any) -> Any:
        self.asked.append(x.size)
        return 2 * x


def costing(monkeypatch: pytest.MonkeyPatch, seconds: float, power: float) -> Reference:
    """A reference that would take ``seconds`` at the sizes of the task."""
    monkeypatch.setattr(References, "time", lambda _, values: seconds * (values["n"] / N) ** power)
    return Reference()


@pytest.mark.parametrize("inputs", [drawn, given()], ids=["drawn", "given"])
def test_one_that_would_take_too_long_is_never_asked_there(
    monkeypatch: pytest.MonkeyPatch, inputs: Any
) -> None:
    reference = costing(monkeypatch, 170.0, 2.0)
    sizes = {"n": N} if callable(inputs) else {}
    problem = prepare(Task(TEXT, reference, inputs, sizes=sizes), seeds=3, seconds=10.0)
    assert max(reference.asked) == N // 16
    first, *others = problem.instances
    assert not first.verified
    assert first.shapes == {"x": (N,), "out": (N,)}
    assert [instance.seed for instance in others] == [1, 2, 3]
    assert {instance.shapes["out"] for instance in others} == {(max(reference.asked),)}
    (note,) = [note for note in problem.notes if note.startswith("programs are verified at n = ")]
    assert note.endswith("they are only measured: the reference would take about 170 s there")
    assert problem.sizing is not None
    assert problem.sizing.given == {"n": N // 16}
    assert needed(problem).read <= N // 4
    assert max(reference.asked) == N // 16


def test_one_that_is_quick_is_asked_at_the_sizes_of_the_task(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reference = costing(monkeypatch, 0.3, 1.0)
    problem = prepare(Task(TEXT, reference, drawn, sizes={"n": N}), seeds=3, seconds=10.0)
    assert reference.asked == [N] * 4
    assert problem.notes == ()
    assert problem.references is not None


def test_a_call_that_had_to_wait_for_a_core_is_not_taken_for_a_slow_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = itertools.count()
    seconds = lambda *_: 0.4 if next(calls) == 2 else 1e-3  # noqa: E731  # the second size, once
    monkeypatch.setattr(References, "time", seconds)
    reference = Reference()
    assert prepare(Task(TEXT, reference, given()), seeds=1, seconds=10.0).notes == ()
    assert max(reference.asked) == N


def test_seeds_are_left_out_for_time_and_one_is_kept() -> None:
    def slow(x: Any) -> Any:
        time.sleep(0.02)
        return 2 * x

    task = Task(TEXT, slow, {"x": given()["x"][:64], "n": 64})
    problem = prepare(task, seeds=50, seconds=0.2)
    assert 1 <= len(problem.instances) < 20
    (note,) = problem.notes
    assert note.startswith(f"seeds: {len(problem.instances)} of 50, the reference takes 0.02")
    assert len(prepare(task, seeds=3, seconds=1e-6).instances) == 1


def test_where_a_task_is_verified_smaller_its_reference_is_not_asked_at_its_own_sizes() -> None:
    reference = Reference()
    task = Task(TEXT, reference, drawn, sizes={"n": N}, verify_sizes={"n": 100})
    problem = prepare(task, seeds=2)
    assert max(reference.asked) == 100
    assert problem.instances[0].shapes["out"] == (N,)
    assert 300 < needed(problem).read <= 400
    assert max(reference.asked) == 100


def test_a_shape_that_no_size_tells_is_asked_for() -> None:
    asked: list[int] = []

    def odd(x: Any) -> Any:
        asked.append(x.size)
        return np.zeros(x.size // 3 + 1)

    task = Task(TEXT, odd, drawn, sizes={"n": 3000}, verify_sizes={"n": 100})
    assert prepare(task, seeds=1).instances[0].shapes["out"] == (1001,)
    assert max(asked) == 3000


@pytest.mark.parametrize(("seconds", "slow"), [(9.0, True), (0.2, False)])
def test_one_call_at_the_sizes_of_a_task_is_foreseen_from_smaller_ones(
    monkeypatch: pytest.MonkeyPatch, seconds: float, slow: bool
) -> None:
    reference = costing(monkeypatch, seconds, 1.0)
    task = Task(TEXT, reference, drawn, sizes={"n": N}, verify_sizes={"n": 100})
    assert prepare(task, seeds=2).is_slow_as_measured == slow
    assert max(reference.asked) == 100
