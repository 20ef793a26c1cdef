"""Loops that count the bits of a number, and those that nearly do."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.bits import bits_at_once
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const unsigned int* a, const int* c, int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned int x = a[i] * 2654435761u;
    int s = c[i], d = 0;
    %s
    out[i] = d;
}
"""
ARRAYS = {
    "a": Array("u4", ("n",)), "c": Array("i4", ("n",), "positive"), "out": Array("i4", ("n",), "zeros"),
}  # fmt: skip


def made(body: str) -> Kernel | Refused:
    return bits_at_once(kernel_of(TEXT % body))


@pytest.mark.parametrize(
    "body",
    [
        "while (x) { d += x & 1; x >>= 1; }",
        "while (x != 0) { if (x & 1) d++; x = x >> 1; }",
        "for (; x > 0; x /= 2) d += x & 1u;",
        "while (x) { x &= x - 1; ++d; }",
        "for (; x; x = x & (x - 1)) d += 1; d += x;",
        "for (int k = 0; k < 32; k++) d += (x >> k) & 1;",
        "for (int k = 0; k < 32; ++k) { if (((x >> k) & 1) != 0) d++; }",
        "while (s) { s &= s - 1; d++; }",
        "unsigned long long y = x; y = y << 20 | x; while (y) { d += y & 1; y >>= 1; }",
    ],
)
def test_they_are_counted_at_once(body: str) -> None:
    after = written(made(body))
    assert "__popc" in after
    assert end_of(TEXT % body, after, ARRAYS, {"n": 70}, {"n": 33}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "while (x) { x >>= 1; d += x & 1; }",
        "while (x) { d += x & 3; x >>= 1; }",
        "while (x) { d += x & 1; x >>= 2; }",
        "while (x > 1) { d += x & 1; x >>= 1; }",
        "while (s > 0) { s &= s - 1; d++; }",
        "while (x) { x &= x - 1; d += 2; }",
        "for (int k = 0; k < 31; k++) d += (x >> k) & 1;",
        "for (int k = 1; k < 32; k++) d += (x >> k) & 1;",
        "unsigned char y = x; for (int k = 0; k < 32; k++) d += (y >> k) & 1;",
        "while (x) { d += s & 1; x >>= 1; }",
        "while (x) { x += x & 1; x >>= 1; }",
        "float f = 0; while (x) { f += x & 1; x >>= 1; } d = (int)f;",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(made(body)) == "no loop counts the bits of a number"
