"""``__constant__`` and ``__device__`` data of a program: bound by name, and fresh for every run."""

from __future__ import annotations

import re

import numpy as np
import pytest

from optiml_magic.calling import Kernels
from optiml_magic.errors import BindingError
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome
from optiml_magic.optimize import evaluate_once, prepared, run_once
from optiml_magic.settings import Settings, resolve
from tests.present import sampled

CONVOLVE = """\
#define R 2
namespace cfg { __constant__ float coef[2 * R + 1]; }
__constant__ int bias;
__device__ float scale[1] = {2.0f};
#pragma optiml launch convolve grid(cdiv(n, 128)) block(128)
__global__ void convolve(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = bias;
    for (int k = -R; k <= R; ++k)
        if (i + k >= 0 && i + k < n) sum += scale[0] * cfg::coef[k + R] * x[i + k];
    out[i] = sum;
}
"""
X = np.random.default_rng(0).random(1000, dtype=np.float32)
COEF = np.array([1, 2, 4, 8, 16], np.float32)

# The last block to arrive adds up; only right if `arrived` and `total` are fresh for every run.
LAST_BLOCK = """\
__device__ unsigned arrived;
static __device__ float total = 0.5f;
#pragma optiml launch add grid(cdiv(n, 128)) block(128)
#pragma optiml launch finish grid(1) block(32)
__global__ void add(const float* x, float* out, int n) {
    static __device__ int seen;
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(&total, x[i]);
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0 && atomicAdd(&arrived, 1) == gridDim.x - 1) out[0] = atomicAdd(&seen, 1);
}
__global__ void finish(float* out) { if (threadIdx.x == 0) out[1] = total + 1000 * arrived; }
"""


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def settings(request: pytest.FixtureRequest) -> Settings:
    return resolve({"device": request.param})


def convolved(x: np.ndarray, coef: np.ndarray, bias: float) -> np.ndarray:
    padded = np.pad(x, 2)
    return bias + 2 * sum(coef[k] * padded[k : k + len(x)] for k in range(5))


def task(**inputs: object) -> Task:
    return Task(CONVOLVE, convolved, {"x": X, "n": 1000, "coef": COEF, "bias": 3, **inputs})


@pytest.mark.slow
def test_constants_bind_by_name_and_initialised_ones_keep_their_value(settings: Settings) -> None:
    checked = evaluate_once(task(), settings)
    assert checked.evaluation.verdict.passed, checked.evaluation.verdict
    constants = [b.name for b in checked.problem.interface.buffers if b.place == "variable"]
    assert constants == ["coef", "bias"]


def test_a_call_may_give_constants_and_else_keeps_those_of_the_task(settings: Settings) -> None:
    problem = prepared(task(), settings)
    best = Kernels.of(problem, settings)(problem.program.text)
    ones = np.ones(5, np.float32)
    np.testing.assert_allclose(best(X[:500]), convolved(X[:500], COEF, 3), rtol=1e-5)
    np.testing.assert_allclose(best(X, ones, 1), convolved(X, ones, 1), rtol=1e-5)
    np.testing.assert_allclose(best(X, coef=ones), convolved(X, ones, 3), rtol=1e-5)


def test_every_run_begins_with_the_module_s_own_values(settings: Settings) -> None:
    n = 1000
    program = Task(
        LAST_BLOCK,
        lambda x: np.array([0, x.sum() + 0.5 + 1000 * 8]),
        {"x": X, "n": n},
        outputs={"out": "f4[2]"},
        rtol=1e-4,
    )
    for _ in range(2):  # each on three sets of inputs in one host, and timed in many launches
        evaluation = evaluate_once(program, settings).evaluation
        assert evaluation.verdict.passed, evaluation.verdict


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"coef": COEF.astype(np.float64)}, "`coef` holds float64"),
        ({"bias": 2.5}, "`bias` is 2.5, which int32 cannot hold"),
        ({"bias": "three"}, "`bias` is a str"),
    ],
)
def test_what_does_not_fit_is_named(inputs: dict[str, object], message: str) -> None:
    with pytest.raises(BindingError, match=re.escape(message)):
        evaluate_once(task(**inputs), resolve({"device": "emulated"}))


def test_a_constant_of_another_size_is_not_filled_up_with_zeros() -> None:
    checked = evaluate_once(task(coef=np.ones(7, np.float32)), resolve({"device": "emulated"}))
    assert checked.evaluation.verdict.outcome is Outcome.INVALID
    wanted = "`coef` has 28 bytes, and the variable in the code 20"
    assert checked.evaluation.verdict.summary == wanted


def test_a_constant_that_nobody_fills_is_no_zero() -> None:
    given = {"x": X, "n": 1000, "bias": 3}
    with pytest.raises(BindingError, match=re.escape("`coef`, which would hold zeros")) as caught:
        evaluate_once(Task(CONVOLVE, None, given), resolve({"device": "emulated"}))
    assert caught.value.line == 2


def test_a_candidate_may_not_bring_a_constant_that_the_task_does_not_fill() -> None:
    other = CONVOLVE.replace("__constant__ int bias;", "__constant__ int bias, offset;")
    checked = evaluate_once(task(), resolve({"device": "emulated"}), program=other)
    assert checked.evaluation.verdict.outcome is Outcome.INVALID
    assert "`offset`" in checked.evaluation.verdict.summary


def test_a_call_tells_of_elements_that_were_never_written(settings: Settings) -> None:
    half = """\
#pragma optiml launch half grid(cdiv(n, 128)) block(128)
__global__ void half(const unsigned char* x, unsigned char* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 2) out[i] = x[i];
}
"""
    x = np.arange(4000, dtype=np.uint8)
    given = Task(half, None, {"x": x, "n": 4000}, outputs={"out": "u1[n]"})
    with pytest.warns(UserWarning, match=r"left (19|20)\d\d of 4000 elements of `out` unwritten"):
        out = run_once(given, settings)["out"]
    np.testing.assert_array_equal(out[1::2], x[1::2])


def test_a_call_writes_to_the_output_that_it_is_given(settings: Settings) -> None:
    problem = prepared(task(), settings)
    out = np.zeros_like(X)
    returned = Kernels.of(problem, settings)(problem.program.text)(X, out=out)
    assert returned is out
    np.testing.assert_allclose(out, convolved(X, COEF, 3), rtol=1e-5)


AFFINE = """\
namespace cfg { struct Affine { float scale; double shift; }; __constant__ Affine affine[2]; __constant__ Affine one; }
#pragma optiml launch move grid(cdiv(n, 128)) block(128)
__global__ void move(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] * cfg::affine[i % 2].scale + cfg::affine[i % 2].shift + cfg::one.shift;
}
"""
PACKED = [("scale", "f4"), ("shift", "f8")]


def moved(x: np.ndarray, affine: np.ndarray, one: np.void) -> np.ndarray:
    at = np.arange(len(x)) % 2
    return x * affine["scale"][at] + affine["shift"][at] + one["shift"]


@pytest.mark.parametrize("as_array", sampled([True, False], 2))
def test_a_constant_may_be_a_struct(as_array: bool, settings: Settings) -> None:
    affine = np.array([(2, 0.5), (3, -1)], np.dtype(PACKED, align=True))
    one = affine[:1] if as_array else affine[0]
    checked = evaluate_once(
        Task(AFFINE, moved, {"x": X, "n": 1000, "affine": affine, "one": one}), settings
    )
    assert checked.evaluation.verdict.passed, checked.evaluation.verdict
    problem = checked.problem
    best = Kernels.of(problem, settings)(problem.program.text)
    other = affine[::-1].copy()
    np.testing.assert_allclose(best(X, affine=other), moved(X, other, affine[0]), rtol=1e-5)


def test_a_constant_struct_of_another_layout_is_refused() -> None:
    affine = np.array([(2, 0.5), (3, -1)], np.dtype(PACKED))
    given = {"x": X, "n": 1000, "affine": affine, "one": affine[0]}
    checked = evaluate_once(Task(AFFINE, moved, given), resolve({"device": "emulated"}))
    verdict = checked.evaluation.verdict
    assert verdict.outcome is Outcome.INVALID
    assert "it has 16 bytes for the compiler, and 12 in the array" in verdict.summary
    assert verdict.line == 1
    with pytest.raises(BindingError, match="`affine` is a struct `Affine`, and no array gives"):
        evaluate_once(
            Task(AFFINE, moved, {**given, "affine": X[:2]}), resolve({"device": "emulated"})
        )
