"""Functions that are put beside a kernel, and locals of their names."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.spelled_names import hidden

from .alike import kernel_of

HELPER = (
    "template <int LANES> __device__ __forceinline__ int lanes_sum(int value) { return value; }"
)
TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
}
"""


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ("int lanes_sum = 3; out[i] = lanes_sum;", "lanes_sum"),
        ("float a = 1, lanes_sum; lanes_sum = a; out[i] = lanes_sum;", "lanes_sum"),
        ("for (int lanes_sum = 0; lanes_sum < 3; ++lanes_sum) out[i] += 1;", "lanes_sum"),
        ("int lanes_sums = 3, value = 2; out[i] = lanes_sums + value;", ""),
    ],
)
def test_a_local_may_hide_a_function_of_ours(body: str, name: str) -> None:
    assert hidden(HELPER, kernel_of(TEXT.replace("BODY", body)).function) == name
