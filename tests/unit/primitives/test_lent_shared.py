"""Functions that are lent an array in shared memory, and have such memory of their own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.expanded import expanded
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__device__ float total(float* v, int t, float add) {
    __shared__ float red[32];
    red[t] = v[t] + add;
    __syncthreads();
    for (int s = 16; s > 0; s /= 2) { if (t < s) red[t] += red[t + s]; __syncthreads(); }
    return red[0];
}
__global__ void k(const float* x, float* out, float* more, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    __shared__ float q[32];
    q[t] = i < n ? x[i] : 0.0f;
    __syncthreads();
    float sum = total(q, t, 0.0f);
    if (i < n) out[i] = sum;
}
"""
CALL = "float sum = total(q, t, 0.0f);"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("out[i] = sum", "out[i] = sum"),
        ("float q[32];", "float q[32]; __shared__ float red[32]; red[t] = 7.0f;"),
        ("return", "v[t] = 5.0f; return"),
        (CALL, ("float sum = 0.0f; for (int j = 0; j < 3; j++) { float one = total(q, t, j); "
               "sum += one; __syncthreads(); }")),
    ],
)  # fmt: skip
def test_what_its_threads_share_is_the_kernel_s(old: str, new: str) -> None:
    before = TEXT.replace(old, new)
    after = written(expanded(kernel_of(before)))
    assert "total(" not in after.split("__global__")[1]
    arrays = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros"),
              "more": Array("f4", ("n",), "zeros")}  # fmt: skip
    assert end_of(before, after, arrays, {"n": 37}, {"n": 1}) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (CALL, CALL + " __syncthreads(); sum += total(q, t, 1.0f);"),
        (CALL, "float sum = q[1] + total(q, t, 0.0f);"),
        (CALL, "float sum = n > 2 ? total(q, t, 0.0f) : 1.0f;"),
        ("__shared__ float red[32];", "extern __shared__ float red[];"),
    ],
)
def test_functions_that_stay(old: str, new: str) -> None:
    assert "it calls no function" in refused(expanded(kernel_of(TEXT.replace(old, new))))
