"""``.best`` on arrays that lie on the card: in this process, zero-copy, on the current stream."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from optiml_magic.calling import Kernels
from optiml_magic.errors import BindingError
from optiml_magic.model.task import Task
from optiml_magic.optimize import evaluate_once, prepared
from optiml_magic.result import Kernel
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task
from tests.e2e.test_variables import COEF, CONVOLVE, X, convolved

pytestmark = pytest.mark.gpu
A = np.random.default_rng(1).random((96, 160), dtype=np.float32)
TWO_PASS = """\
#pragma optiml scratch part f4[cdiv(n, 256)]
#pragma optiml zero(out)
#pragma optiml launch sums grid(cdiv(n, 256)) block(256) shared(65536)
#pragma optiml launch total grid(1) block(1) args(part, out, cdiv(n, 256))
__global__ void sums(const float* x, float* part, int n) {
    extern __shared__ float pool[];
    float* mine = pool + 8192;  // beyond the 48 KB that a launch gets without asking
    int i = blockIdx.x * 256 + threadIdx.x;
    mine[threadIdx.x] = i < n ? x[i] : 0.0f;
    for (int s = 128; s; s /= 2) {
        __syncthreads();
        if (threadIdx.x < s) mine[threadIdx.x] += mine[threadIdx.x + s];
    }
    if (!threadIdx.x) part[blockIdx.x] = mine[0];
}
__global__ void total(const float* part, float* out, int m) {
    for (int i = 0; i < m; ++i) *out += part[i];
}
"""
ADD = """\
#pragma optiml launch add grid(cdiv(n, 128)) block(128)
__global__ void add(float* y, const float* x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += x[i];
}
"""


def best(task: Task, device: str = "cuda") -> Kernel:
    settings = resolve({"device": device})
    problem = prepared(task, settings)
    return Kernels.of(problem, settings)(problem.program.text)


def transpose(device: str = "cuda") -> Kernel:
    return best(known_task("transpose_naive", rows=64, cols=96), device)


@pytest.fixture(params=["cupy", "torch"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param)


def on_card(library: Any, array: np.ndarray) -> Any:
    return (
        library.asarray(array) if library.__name__ == "cupy" else library.from_numpy(array).cuda()
    )


def on_host(array: Any) -> np.ndarray:
    return np.asarray(array.get() if hasattr(array, "get") else array.cpu())


@pytest.mark.parametrize("device", ["cuda", "emulated"])
def test_arrays_of_the_user_come_back_as_such(library: Any, device: str) -> None:
    given = on_card(library, A)
    out = transpose(device)(given)
    assert type(out) is type(given)
    assert out.device == given.device
    np.testing.assert_array_equal(on_host(out), A.T)


def test_nothing_is_copied_and_in_out_arrays_change_in_place(library: Any) -> None:
    y, x = on_card(library, np.ones(1000, np.float32)), on_card(library, X)
    task = Task(ADD, lambda y, x: y + x, {"y": np.ones(1000, np.float32), "x": X, "n": 1000})
    out = best(task)(y, x)
    assert out is y
    np.testing.assert_allclose(on_host(y), 1 + X)


def test_the_current_stream_is_used(library: Any) -> None:
    run = transpose()
    given = on_card(library, A)
    run(given)
    if library.__name__ == "cupy":
        stream = library.cuda.Stream(non_blocking=True)
        with stream:
            source = library.zeros_like(given)
            source[...] = given  # ordered before the kernel by the stream alone
            out = run(source)
        stream.synchronize()
    else:
        stream = library.cuda.Stream()
        stream.wait_stream(library.cuda.current_stream())
        with library.cuda.stream(stream):
            library.cuda._sleep(50_000_000)
            source = given.clone()
            out = run(source)
        stream.synchronize()
    np.testing.assert_array_equal(on_host(out), A.T)


def test_scratch_cleared_buffers_and_large_dynamic_shared_memory(library: Any) -> None:
    task = Task(
        TWO_PASS, lambda x: np.array([x.sum()]), {"x": X, "n": 1000}, outputs={"out": "f4[1]"}
    )
    assert evaluate_once(task, resolve({"device": "cuda"})).evaluation.verdict.passed
    run = best(task)
    for _ in range(2):
        out = run(on_card(library, X))
        np.testing.assert_allclose(on_host(out), [X.sum()], rtol=1e-5)


def test_constants_are_filled_from_numbers_and_arrays_of_either_side(library: Any) -> None:
    run = best(Task(CONVOLVE, convolved, {"x": X, "n": 1000, "coef": COEF, "bias": 3}))
    x, ones = on_card(library, X), np.ones(5, np.float32)
    np.testing.assert_allclose(on_host(run(x)), convolved(X, COEF, 3), rtol=1e-5)
    np.testing.assert_allclose(on_host(run(x, ones, 1)), convolved(X, ones, 1), rtol=1e-5)
    out = run(x, coef=on_card(library, ones))
    np.testing.assert_allclose(on_host(out), convolved(X, ones, 3), rtol=1e-5)


def test_an_output_that_is_given_is_written_to(library: Any) -> None:
    out = on_card(library, np.zeros((160, 96), np.float32))
    assert transpose()(on_card(library, A), out=out) is out
    np.testing.assert_array_equal(on_host(out), A.T)


def test_what_does_not_fit_is_named(library: Any) -> None:
    run = transpose()
    with pytest.raises(BindingError, match="is not contiguous"):
        run(on_card(library, A).T)
    with pytest.raises(BindingError, match="holds float64"):
        run(on_card(library, A.astype(np.float64)))
    task = Task(ADD, lambda y, x: y + x, {"y": X, "x": X, "n": 1000})
    with pytest.raises(BindingError, match=re.escape("`y` is on the GPU, and `x` is a ndarray")):
        best(task)(on_card(library, X), X)


def test_a_torch_tensor_that_wants_a_gradient_is_passed_as_it_is() -> None:
    torch = pytest.importorskip("torch")
    given = torch.from_numpy(A).cuda().requires_grad_()
    np.testing.assert_array_equal(transpose()(given).cpu().numpy(), A.T)
