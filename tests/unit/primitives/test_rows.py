"""Which loops walk along rows of their own, and which along what neighbouring threads load too."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.rows import rows

from .shapes import kernel

TEXT = """\
struct Pair { float re, im; };
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const Pair* p, const float* x, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    for (int j = 0; j < m; ++j) s += %s;
    out[i] = s;
}
"""


@pytest.mark.parametrize(
    "load",
    [
        "x[i + j]",
        "p[i + j].re",
        "p[i - j].im",
        "x[2 * i / 3 + j]",
        "x[i / 4 - j]",
        "x[(long long)i * 3 / 4 + j]",
        "x[i / 2 / 2 + j]",
    ],
)
def test_neighbours_load_side_by_side(load: str) -> None:
    assert not rows(kernel(TEXT % load))


@pytest.mark.parametrize(
    "load",
    [
        "x[i * m + j]",
        "p[i * m + j].re",
        "p[2 * i + j].re",
        "((const float*)(p + i))[j]",
        "x[5 * i / 3 + j]",
        "x[i / m + j + i * 2]",
        "x[i * m / 2 + j]",
        "x[i % 7 * m + j]",
    ],
)
def test_neighbours_have_rows_of_their_own(load: str) -> None:
    assert len(rows(kernel(TEXT % load))) == 1
