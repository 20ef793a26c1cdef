"""Kernels that are made again from data: from a pickle, and through JSON."""

from __future__ import annotations

import gc
import pickle
import weakref
from typing import Any

import numpy as np
import pytest

from optiml_magic.calling import Kernels, noted
from optiml_magic.errors import UsageError
from optiml_magic.model.called import Called
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.task import Task
from optiml_magic.optimize import prepared
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.e2e.test_structs import task as struct_task
from tests.e2e.test_variables import COEF, CONVOLVE, X, convolved
from tests.present import sampled

STARTED = """\
#pragma optiml init(y) = start
#pragma optiml launch add grid(cdiv(n, 64)) block(64)
__global__ void add(const float* x, float* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += TWO * x[i];
}
"""
START = np.arange(100, dtype=np.float32)
ONES = np.ones(100, np.float32)


def _reference(a: np.ndarray) -> np.ndarray:
    return a.T


CASES: dict[str, tuple[Task, dict[str, Any]]] = {
    "transpose": (
        known_task("transpose_naive", rows=32, cols=48),
        {"a": np.arange(60, dtype=np.float32).reshape(12, 5)},
    ),
    "variables": (
        Task(CONVOLVE, convolved, {"x": X, "n": 1000, "coef": COEF, "bias": 3}),
        {"x": X[:500]},
    ),
    "structs": (struct_task(), {"p": struct_task().inputs["p"][:70], "n": 70}),  # type: ignore[index]
    "what an output starts as": (
        Task(
            STARTED,
            lambda x, start: start + 2 * x,
            {"x": ONES, "start": START, "n": 100},
            defines={"TWO": "2"},
        ),
        {"x": ONES},
    ),
}


@pytest.mark.parametrize("name", sampled(CASES, 2))
def test_a_kernel_is_made_again_from_a_pickle_and_from_json(name: str) -> None:
    task, arrays = CASES[name]
    settings = resolve({"device": "emulated:h200"})
    problem = prepared(task, settings)
    kernels = Kernels.of(problem, settings, ("where it is from",))
    text = problem.program.text
    wanted = kernels(text)(**arrays)
    through = from_json(Called, to_json(Called, kernels.data))
    assert through == kernels.data
    for again in (
        pickle.loads(pickle.dumps(kernels))(text),
        pickle.loads(pickle.dumps(kernels(text))),
        Kernels.again(through, text)(text),
    ):
        assert np.array_equal(again(**arrays), wanted)
        assert repr(again) == repr(kernels(text))


def test_arrays_that_a_call_brings_are_not_kept_and_large_ones_not_noted() -> None:
    settings = resolve({"device": "emulated"})
    a = np.random.default_rng(0).random((64, 48), dtype=np.float32)
    task = Task(known_task("transpose_naive").kernel, _reference, {"a": a, "rows": 64, "cols": 48})
    seen = weakref.ref(a)
    problem = prepared(task, settings)
    kernels = Kernels.of(problem, settings)
    assert noted(problem, settings) == kernels.data
    del a, task, problem
    gc.collect()
    assert seen() is None
    large = np.zeros(300_000, np.float32)
    given = {"x": large, "start": large, "n": 300_000}
    started = Task(STARTED, None, given, defines={"TWO": "2"})
    assert noted(prepared(started, settings), settings) is None


def test_numbers_that_json_lacks_keep_their_bits() -> None:
    settings = resolve({"device": "emulated"})
    inputs = {"a": np.ones((8, 4), np.float32), "rows": 8, "cols": np.int32(4)}
    kernels = Kernels.of(
        prepared(Task(known_task("transpose_naive").kernel, _reference, inputs), settings), settings
    )
    values = kernels.problem.instances[0].values
    again = Kernels.again(from_json(Called, to_json(Called, kernels.data)), "").problem
    assert again.instances[0].values == values
    assert type(again.instances[0].values["cols"]) is type(values["cols"])


def test_a_reference_that_cannot_be_pickled_is_named() -> None:
    with pytest.raises(UsageError, match="<lambda>` of this task cannot"):
        pickle.dumps(Task("", lambda a: a))
    assert pickle.loads(pickle.dumps(Task("", _reference))).reference is _reference
