"""Guards of items that are several elements apart."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.spaced import spaced
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(GRID) block(16, 4)
__global__ void k(const unsigned char* a, unsigned char* out, int w, int h) {
    int x = 2 * (blockIdx.x * blockDim.x + threadIdx.x);
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    BEFORE
    if (TEST) return;
    out[y * w + x] = a[y * w + x] + 1;
    out[y * w + x + 1] = a[y * w + x];
}
"""
ARRAYS = {"a": Array("u1", ("h", "w")), "out": Array("u1", ("h", "w"), "zeros")}
HALVES = "cdiv(w / 2, 16), cdiv(h, 4)"


def _text(grid: str = HALVES, test: str = "x >= w || y >= h", before: str = "") -> str:
    return TEXT.replace("GRID", grid).replace("TEST", test).replace("BEFORE", before)


@pytest.mark.parametrize(
    "grid", [HALVES, "cdiv(w, 32), cdiv(h, 4)", "cdiv(cdiv(w, 2), 16), cdiv(h, 4)"]
)
@pytest.mark.parametrize("test", ["x >= w || y >= h", "y >= h || x + 1 >= w", "!(x < w && y < h)"])
def test_the_guard_says_how_many_items_there_are(grid: str, test: str) -> None:
    text = _text(grid, test)
    after = written(spaced(kernel_of(text)))
    assert "grid(cdiv(w / 2, 16), cdiv(h, 4))" in after
    assert "require w % 2 == 0" in after
    assert "blockIdx.x * 16 + threadIdx.x >= w / 2" in after
    assert end_of(text, after, ARRAYS, {"w": 70, "h": 5}, {"w": 66, "h": 1}) == "same"


@pytest.mark.parametrize(
    ("grid", "test", "before"),
    [
        ("cdiv(w, 16), cdiv(h, 4)", "x >= w || y >= h", ""),  # twice as many threads as items
        ("cdiv(w / 2, 16), cdiv(h, 8)", "x >= w || y >= h", ""),
        ("cdiv(w / 3, 16), cdiv(h, 4)", "x >= w || y >= h", ""),
        (HALVES, "x + 2 >= w || y >= h", ""),
        (HALVES, "x >= w - 2 || y >= h", ""),
        (HALVES, "x >= w || y >= h || a[0] > 3", ""),
        (HALVES, "x >= w || y >= h", "__syncthreads();"),
        (HALVES, "x / 2 >= w / 2 || y >= h", ""),
        (HALVES, "x >= w || y >= h", "w -= 2;"),
    ],
)
def test_others_stay(grid: str, test: str, before: str) -> None:
    assert refused(spaced(kernel_of(_text(grid, test, before))))
