"""Blocks whose threads number themselves by hand, in the shape that they stand for."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.shaped import linear, planar
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

FLAT = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 4)) block(64)
__global__ void k(const float* a, float* o, int h, int w) {
    __shared__ float last[64];
    int t = threadIdx.x;
    int x = blockIdx.x * 16 + t % 16;
    int y = blockIdx.y * 4 + threadIdx.x / 16;
    last[threadIdx.x] = y < h && x < w ? a[y * w + x] : 0.0f;
    __syncthreads();
    if (y < h && x < w) o[y * w + x] = 2.0f * last[t] + blockDim.x;
}
"""
FOLDED = """\
#pragma optiml launch k grid(cdiv(w, 64), h) block(16, 4)
__global__ void k(const float* a, float* o, int h, int w) {
    int x = blockIdx.x * (blockDim.x * blockDim.y) + threadIdx.y * 16 + threadIdx.x;
    if (x < w) o[blockIdx.y * w + x] = 2.0f * a[blockIdx.y * w + x];
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}


def same(before: str, after: str) -> None:
    assert end_of(before, after, ARRAYS, {"h": 37, "w": 71}, {"h": 5, "w": 9}) == "same"


def test_a_number_that_is_taken_apart_is_two_axes() -> None:
    after = written(planar(kernel_of(FLAT)))
    assert "block(16, 4)" in after
    assert "int t = threadIdx.y * 16u + threadIdx.x;" in after
    assert "x = blockIdx.x * 16 + threadIdx.x;" in after
    assert "y = blockIdx.y * 4 + threadIdx.y;" in after
    same(FLAT, after)


def test_bits_that_are_taken_apart() -> None:
    text = FLAT.replace("t % 16", "(t & 15)").replace("threadIdx.x / 16", "(threadIdx.x >> 4)")
    after = written(planar(kernel_of(text)))
    assert "y = blockIdx.y * 4 + threadIdx.y;" in after
    assert "% 16" not in after


def test_a_number_that_is_put_together_is_one_axis() -> None:
    after = written(linear(kernel_of(FOLDED)))
    assert "block(64)" in after
    assert "int x = blockIdx.x * 64u + threadIdx.x;" in after
    same(FOLDED, after)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("t % 16", "t % 8", "its threads do not take their number apart in one way"),
        ("block(64)", "block(B)", "its block has no fixed extent along one axis"),
        ("block(64)", "block(72)", "its block is not a number of whole rows"),
        ("int t = threadIdx.x;", "int t = threadIdx.x; t += 0;", "its threads do not take"),
        ("    last[", "    for (; t < 0; t += 16) {}\n    last[", "its threads do not take"),
        ("a[y * w + x]", "at(a)", "`at` reads where its thread stands"),
        ("__syncthreads();", 'asm("bar.sync 0;");', "gnu asm expression is not read"),
    ],
)
def test_other_numbers_stay(old: str, new: str, reason: str) -> None:
    text = FLAT.replace(old, new)
    if "block(B)" in text:
        text = "#pragma optiml tune B in {64} = 64\n" + text
    if "at(a)" in text:
        text = "__device__ float at(const float* a) { return a[threadIdx.x]; }\n" + text
    assert refused(planar(kernel_of(text))).startswith(reason)


def test_an_axis_that_is_asked_for_alone_stays() -> None:
    found = linear(kernel_of(FOLDED.replace("2.0f *", "2.0f * threadIdx.y *")))
    assert refused(found) == "its threads do more than to number themselves"
