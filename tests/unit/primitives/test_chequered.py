"""Threads for the fields of one colour, which have to be all of them, each once."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.chequered import chequered
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(h, 4)) block(16, 4)
__global__ void k(const float* a, float* out, int n, int h, int c, unsigned u) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < h && TEST)
        out[y * n + x] += a[y * n + x] + 1.0f;
}
"""
ARRAYS = {"a": Array("f4", ("h", "n")), "out": Array("f4", ("h", "n"))}


@pytest.mark.parametrize(
    "test",
    [
        "(x + y) % 2 == c",
        "((x + y) & 1) == c",
        "(x + y + c) % 2",
        "(x + y + c) % 2 == 0",
        "(x - y - 7) % 2 == c",
        "(x - y - 7) % 2 != 0",
        "(c - x - y) % 2 == -1",
        "(x + y) % 2 == 5",
        "x % 2 == (y + c) % 2",
        "(3 * x + 2 * y) % 2 == c",
        "(x + y) % 2 == c && (x + y) % 2 == 1 - c",
        "(blockIdx.x * blockDim.x + threadIdx.x + u) % 2u == 1u",
        "(x + y * n) % 2 == c",
    ],
)
def test_all_of_a_colour_have_a_thread(test: str) -> None:
    text = TEXT.replace("TEST", test)
    after = written(chequered(kernel_of(text)))
    assert "grid(cdiv(n, 2 * 16), cdiv(h, 4))" in after
    for n, h, c in ((1, 1, 0), (1, 2, 1), (33, 5, 0), (32, 4, 1), (40, 3, -1), (17, 6, 2)):
        scalars = {"n": n, "h": h, "c": c, "u": n}
        assert end_of(text, after, ARRAYS, scalars, {"n": 5, "h": 3, "c": 1, "u": 3}) == "same"


@pytest.mark.parametrize(
    "test",
    [
        "true",
        "y % 2 == c",
        "(2 * x + y) % 2 == c",
        "(x + y) % 2 != c",  # of a colour that there is none, all items are another
        "(x + y) % 3 == c",
        "(x / 2 + y) % 2 == c",
        "(x + (int)a[y]) % 2 == c",
        "((x + y) % 2 == c || y == 0)",
        "(x ^ y) & 1",
        "x % 2 != y % 2",
        "(x + (c = 1)) % 2 == c",
        "(x + threadIdx.x) % 2 == c",
        "__shfl_xor_sync(0xffffffffu, x, 1) % 2 == c",
    ],
)
def test_others_stay(test: str) -> None:
    assert refused(chequered(kernel_of(TEXT.replace("TEST", test))))


def test_what_all_items_do_beside_it_keeps_their_threads() -> None:
    text = TEXT.replace("TEST", "(x + y) % 2 == c").replace(
        "    if (x", "    if (x < n && y < h) out[y * n + x] = 2.0f;\n    if (x"
    )
    assert refused(chequered(kernel_of(text)))
    again = written(chequered(kernel_of(TEXT.replace("TEST", "(x + y) % 2 == c"))))
    assert refused(chequered(kernel_of(again)))


def test_a_parity_of_each_round_keeps_its_threads() -> None:
    text = TEXT.replace("    if (x", "    for (int k = 0; k < 3; ++k) if (x")
    assert refused(chequered(kernel_of(text.replace("TEST", "(x + k) % 2 == c"))))
