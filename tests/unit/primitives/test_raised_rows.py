"""Rows that a block's threads compute together in shared memory, as local arrays of a thread."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.raised import raised
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(b) block(64)
__global__ void k(const float* x, float* out, float* more, int n, int b) {
    __shared__ float row[200];
    __shared__ float red[64];
    int t = threadIdx.x, q = blockIdx.x;
    float sum = 0.0f;
    for (int j = t; j < n; j += 64) { row[j] = x[q * 200 + j] * 2.0f; sum += row[j]; }
    red[t] = sum;
    __syncthreads();
    for (int s = 32; s > 0; s /= 2) { if (t < s) red[t] += red[t + s]; __syncthreads(); }
    BETWEEN
    for (int d = t; d < 4; d += 64) {
        float acc = 0.0f;
        for (int j = 0; j < n; j++) acc += row[j] * (j % 4 == d);
        out[q * 4 + d] = acc + red[0];
    }
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BETWEEN", ""),
        ("BETWEEN", "for (int j = t; j < n; j += 64) row[j] += 1.0f; __syncthreads();"),
        ("BETWEEN", "for (int j = t; j < n; j += 64) more[q * 200 + j] = row[n - 1 - j];"),
        ("BETWEEN", "if (t == 0) row[0] = 3.0f; __syncthreads();"),
        ("BETWEEN", "if (t < n) row[t] = 3.0f; __syncthreads();"),
        ("BETWEEN", ("if (x[q] > 0.0f) for (int j = t; j < n; j += 64) row[j] = 1.0f; "
                    "__syncthreads();")),
        ("+= row[j] *", "+= row[n - 1 - j] *"),
        ("+= row[j] *", "+= row[(j + d) % n] *"),
    ],
)  # fmt: skip
def test_rows_are_one_thread_s(old: str, new: str) -> None:
    before = TEXT.replace(old, new).replace("    BETWEEN\n", "")
    after = written(raised(kernel_of(before), rows=True))
    assert "float row[200];" in after
    assert "__shared__" not in after
    arrays = {"x": Array("f4", ("b * 200",)), "out": Array("f4", ("b * 4",), "zeros"),
              "more": Array("f4", ("b * 200",), "zeros")}  # fmt: skip
    sizes, small = {"n": 171, "b": 3}, {"n": 3, "b": 1}
    assert end_of(before, after, arrays, sizes, small, rounds=True) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("BETWEEN", "for (int j = t; j < n; j += 64) atomicAdd(&row[j], 1.0f); __syncthreads();"),
        ("BETWEEN", "float y = row[(t + 1) % 64]; __syncthreads(); row[t] = y; __syncthreads();"),
        ("j = t; j < n; j += 64) { row", "j = t % 32; j < n; j += 32) { row"),
        ("+= row[j] *", "+= row[t] *"),
    ],
)
def test_rows_that_threads_do_more_with_stay(old: str, new: str) -> None:
    text = TEXT.replace(old, new).replace("    BETWEEN\n", "")
    assert refused(raised(kernel_of(text), rows=True))


def test_nobody_has_them_who_does_not_ask() -> None:
    assert refused(raised(kernel_of(TEXT.replace("    BETWEEN\n", ""))))
