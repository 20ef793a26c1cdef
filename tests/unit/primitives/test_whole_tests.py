"""Tests of whole numbers against a quotient of floats, as tests of whole numbers."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.whole_tests import whole_tests
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(b) block(96)
template <typename T>
__inline__ __device__ T block_sum(T val) {
    static __shared__ T shared[32];
    int lane = threadIdx.x & 0x1f;
    int wid = threadIdx.x >> 5;
    for (int mask = 16; mask > 0; mask >>= 1) val += __shfl_xor_sync(0xffffffff, val, mask, 32);
    if (lane == 0) shared[wid] = val;
    __syncthreads();
    val = (threadIdx.x < (blockDim.x / 32.f)) ? shared[lane] : (T)(0.0f);
    for (int mask = 16; mask > 0; mask >>= 1) val += __shfl_xor_sync(0xffffffff, val, mask, 32);
    return val;
}
__global__ void k(const float* x, float* out, int n, int b) {
    __shared__ float s_mean;
    float sum = 0.0f;
    for (int i = threadIdx.x; i < n; i += blockDim.x) sum += x[blockIdx.x * n + i];
    float all = block_sum<float>(sum);
    if (threadIdx.x == 0) s_mean = all / n;
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x)
        out[blockIdx.x * n + i] = x[blockIdx.x * n + i] - s_mean;
}
"""
COUNT = """\
#pragma optiml launch k grid(1) block(%d)
__global__ void k(const float* x, int* out, int n) {
    int t = threadIdx.x, lane = (int)threadIdx.x - 40;
    unsigned u = threadIdx.x;
    long long far = (long long)threadIdx.x * 1000000;
    float f = threadIdx.x;
    if (%s) out[t] = 1;
}
"""
ASKED = "threadIdx.x < (blockDim.x / 32.f)"


@pytest.mark.parametrize(
    "spelled",
    [ASKED, "threadIdx.x < blockDim.x / 32.0", "blockDim.x / 32.f > threadIdx.x",
     "threadIdx.x < (float)blockDim.x / 32", "!(threadIdx.x >= blockDim.x / 32.f)"],
)  # fmt: skip
def test_a_block_that_asks_so_which_threads_stand_for_warps_is_one_thread(spelled: str) -> None:
    before = TEXT.replace(ASKED, spelled)
    after = written(raised(kernel_of(before)))
    assert "__shfl" not in after.partition("__global__")[2]
    arrays = {"x": Array("f4", ("b", "n")), "out": Array("f4", ("b", "n"), "zeros")}
    assert end_of(before, after, arrays, {"n": 171, "b": 3}, {"n": 5, "b": 2}, rounds=True) == (
        "same"
    )


@pytest.mark.parametrize("block", [1, 31, 33, 100])
@pytest.mark.parametrize("op", ["<", "<=", ">", ">="])
@pytest.mark.parametrize("who", ["t", "lane", "u", "far", "threadIdx.x"])
def test_each_test_lets_the_same_threads_through(who: str, op: str, block: int) -> None:
    for test in (f"{who} {op} blockDim.x / 16.f", f"blockDim.x / 16.f {op} {who}"):
        before = COUNT % (block, test)
        after = written(whole_tests(kernel_of(before)))
        assert "16.f" not in after
        arrays = {"x": Array("f4", ("n",)), "out": Array("i4", ("100",), "zeros")}
        assert end_of(before, after, arrays, {"n": 3}, {"n": 2}) == "same"


@pytest.mark.parametrize(
    "test",
    [
        "t < blockDim.x / 3.f",  # whose quotients are rounded
        "t < blockDim.x / 0.5f",
        "t < blockDim.x / -4.f",
        "t < blockDim.x / 32",  # which is whole already
        "f < blockDim.x / 32.f",  # a float on the other side, too
        "t < n / 32.f",  # a number that may be larger than a float holds
        "t < x[0] / 32.f",
        "t == blockDim.x / 32.f",
        "t < blockDim.x * 0.5f",
    ],
)
def test_what_may_be_another_test_is_left_alone(test: str) -> None:
    assert refused(whole_tests(kernel_of(COUNT % (64, test)))) == (
        "no test compares with a quotient of floats"
    )


def test_a_template_may_have_any_type() -> None:
    text = TEXT.replace("threadIdx.x < (blockDim.x", "val < (blockDim.x")
    assert refused(whole_tests(kernel_of(text)))
