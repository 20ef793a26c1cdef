"""Windows that go on by several elements an item, as windows of pieces."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.hopped import hopped
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const float* w, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    %s
    out[i] = s;
}
"""
ARRAYS = {
    "a": Array("f4", ("8 * n + m",)), "w": Array("f4", ("m",)), "out": Array("f4", ("n",), "zeros"),
}  # fmt: skip
SIZES = ({"n": 70, "m": 12}, {"n": 33, "m": 4})
PIECES = {
    "for (int k = 0; k < m; k++) s += a[i * 4 + k];": "piece < m / 4",
    "for (int k = 0; k < 12; k++) { if (k == 2) continue; s += a[i * 3 + k]; }": "piece < 4",
    "for (int k = i * 2; k < i * 2 + 6; ++k) s = fmaxf(s, a[k]);": "piece < 3",
    "for (int j = 0; j < 2; j++) for (int k = 0; k < m; k++) s += a[i * 2 + k] * w[j];":
        "piece < m / 2",
}  # fmt: skip
WHOLE = {
    "for (int k = 0; k < m; k++) s += a[i + k];": "its window does not",
    "for (int k = 0; k < 10; k++) s += a[i * 4 + k];": "a window of 10 is not a multiple of 4",
    "for (int k = 0; k < m; k++) s += a[i * 4 + k] * w[k];": "its window does not",
    "for (int k = 0; k < m; k++) s += a[i * 4 + k] - a[i * 2 + k];": "its window does not",
    "for (int k = 0; k < m; k++) s += a[i * 4 + 2 * k];": "its window does not",
    "for (int k = 0; k < m; k++) { if (a[i * 4 + k] < 0) break; s += 1; }": "the loop does not",
    "for (int k = 0; k < i % 4 * 4; k++) s += a[i * 4 + k];": "how long its window",
}


@pytest.mark.parametrize("body", PIECES)
def test_pieces_are_as_long_as_items_are_apart(body: str) -> None:
    after = written(hopped(kernel_of(TEXT % body), 1 if "int j" in body else 0))
    assert PIECES[body] in after.replace("(m)", "m")
    assert end_of(TEXT % body, after, ARRAYS, *SIZES, rounds=True) in ("same", "narrowed")


@pytest.mark.parametrize("body", WHOLE)
def test_other_windows_stay(body: str) -> None:
    assert refused(hopped(kernel_of(TEXT % body), 0)).startswith(WHOLE[body])
