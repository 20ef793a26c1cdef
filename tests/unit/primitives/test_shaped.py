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


TOLD = """\
#pragma optiml launch k grid(2) block(BLOCK)
__global__ void k(const float* a, float* out, int n, int m) {
    int id = blockIdx.x * 1024 + threadIdx.x;
    BODY
}
"""
LINE = {"a": Array("f4", ("n + 2000",)), "out": Array("f4", ("n + 4096",), "zeros")}


def told(body: str, block: int = 128) -> str:
    return TOLD.replace("BODY", body).replace("BLOCK", str(block))


def same_line(before: str, after: str) -> None:
    assert end_of(before, after, LINE, {"n": 64, "m": 3}, {"n": 37, "m": 1}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "int t = threadIdx.x; int q = t / 16; out[id] = (t % 16 - 3 < 0 ? 1.0f : 2.0f) + q;",
        "int t = threadIdx.x; out[id] = (float)(t % 16 - 8) + (t / 16);",
        "int t = threadIdx.x; out[id] = (t % 16 - 8) / 2 + (t / 16 - 3) / 2;",
        "int t = threadIdx.x; long long d = t % 16 - 8; out[id] = d + (t / 16);",
        "out[id] = -((int)threadIdx.x % 16) + (float)(threadIdx.x / 16);",
        "int t = threadIdx.x; out[id] = max(t % 16 - 8, -2) + abs(t / 16 - 2);",
        "int t = threadIdx.x; auto c = t % 16; auto d = t / 16; out[id] = (c - 8 < 0) + (d < 4) * 4;",
        "int t = threadIdx.x; int d = t / 16; out[id] = a[16 + (t % 16 - d) / 2];",
        "int t = threadIdx.x; const float* q = a + 16; out[id] = q[t % 16 - 8] + q[t / 16];",
        "long long t = threadIdx.x; int d = t / 16; out[id] = (float)(t % 16 - 8) + d;",
        "long long t = threadIdx.x; out[id] = (t / 16 - t % 16) / 2;",
        "long long t = threadIdx.x; int c = t % 16; out[id] = (float)((t / 16 << 30) * 4) + c;",
        "size_t t = threadIdx.x; int c = t % 16; size_t b = t / 16 * 3000000000u; out[id] = (b >> 20) + c;",
        "int t = threadIdx.x; int d = t / 16; if (t % 16 >= -1) out[id] = d;",
        "int t = threadIdx.x; bool b = t % 16; out[id] = 1 << t / 16 << b;",
        "out[id] = threadIdx.x % 16 * 100 + threadIdx.x / 16 + blockDim.y + threadIdx.y;",
        "out[id] = threadIdx.x % 16 * 100 + threadIdx.x / (int)16 - (threadIdx.x / 16ull - 3 < 0);",
    ],
)  # fmt: skip
def test_numbers_stay_of_their_types(body: str) -> None:
    before = told(body)
    after = written(planar(kernel_of(before)))
    assert "block(16, 8)" in after
    same_line(before, after)


@pytest.mark.parametrize(
    "body",
    [
        "unsigned char t = threadIdx.x; int r = t / 16, c = t % 16; out[id] = r * 100 + c;",
        "char t = threadIdx.x; int r = t / 16, c = t % 16; out[id] = r * 100 + c;",
        "bool t = threadIdx.x; int r = t / 16, c = t % 16; out[id] = r * 100 + c;",
        "float t = threadIdx.x; float r = t / 16; int c = threadIdx.x % 16; out[id] = r * 100 + c;",
        "float r = (float)threadIdx.x / 16; int c = threadIdx.x % 16; out[id] = r * 100 + c;",
        "float r = threadIdx.x / (float)16; int c = threadIdx.x % 16; out[id] = r * 100 + c;",
        "int r = (unsigned char)threadIdx.x / 16; int c = threadIdx.x % 16; out[id] = r * 100 + c;",
        "int r = (bool)threadIdx.x / 16; int c = threadIdx.x % 16; out[id] = r * 100 + c;",
        "int r = (signed char)threadIdx.x / 16, c = (signed char)threadIdx.x % 16; out[id] = r + c;",
    ],
)
def test_numbers_that_are_not_those_of_threads_stay(body: str) -> None:
    assert "one way" in refused(planar(kernel_of(told(body, 512))))


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("(float)((int)threadIdx.y * 16 + (int)threadIdx.x - 5)", True),
        ("(threadIdx.y * 16 + (int)threadIdx.x) / 3", True),
        (
            "-((int)blockDim.x * (int)blockDim.y) + 0.5f + 0 * (threadIdx.y * 16 + threadIdx.x)",
            True,
        ),
        ("16777217 + ((unsigned char)threadIdx.y * 16 + threadIdx.x)", False),
        ("0.3f + threadIdx.y * 16 + threadIdx.x", False),
        ("(float)threadIdx.y * 16 + threadIdx.x", False),
    ],
)
def test_numbers_that_are_put_together_stay_of_their_types(value: str, *, kept: bool) -> None:
    before = FOLDED.replace("2.0f *", f"{value} + 2.0f *")
    found = linear(kernel_of(before))
    if kept:
        same(before, written(found))
    else:
        assert "number themselves" in refused(found)
