"""Rows that a thread takes alone, of a plane or of an index that is divided."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.kernels.primitives.fused import fused_rows
from optiml_magic.kernels.primitives.serial import by_rows
from optiml_magic.source.program import parse_program
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(h * w, 32)) block(32)
__global__ void k(const float* a, const float* b, float* out, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    %s
}
"""
PLANE = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, const float* b, float* out, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    %s
}
"""
SHAPES = {"a": ("h", "w"), "b": ("w",), "out": ("h", "w")}
BODIES = [
    (LINE, "if (i < h * w) out[i] = a[i] + b[i % w];"),
    (LINE, "if (i >= h * w) return;\nint r = i / w;\nif (a[i] < 0.0f) return;\nout[i] = a[r * w];"),
    (LINE, "const int n = h * w;\nif (i < n) { int c = i % w, r = i / w; out[r * w + c] = a[c]; }"),
]


@pytest.mark.parametrize(
    ("text", "body"),
    sampled([
        *BODIES,
        (PLANE, "if (x < w && y < h) out[y * w + x] = a[y * w + x] * b[x];"),
        (PLANE, "if (y >= h || x >= w) return;\nif (b[x] > 0.0f) return;\nout[y * w + x] = x;"),
    ], 2),
)  # fmt: skip
def test_a_thread_takes_a_row(text: str, body: str) -> None:
    made = by_rows(kernel(text % body), 16)
    assert "grid(cdiv(h, 16)) block(16)" in applied(made).program.text
    same(text % body, made, SHAPES, {"h": 19, "w": 13})


@pytest.mark.parametrize(
    ("text", "body", "reason"),
    [
        (LINE, "if (i < h * w) out[i] = a[i];", "not taken apart by one size"),
        (LINE, "if (i < h * w) out[i] = a[i] + i / h + i % w;", "not taken apart by one size"),
        (LINE, "if (i < h * w) out[i] = a[i] + b[(i + 1) % w];", "not taken apart by one size"),
        (PLANE, "if (x < w && y < h) out[y * w + x] = threadIdx.y;", "has no rows"),
        (PLANE, "if (x < w && y < h) { out[y * w + x] = 0; __syncthreads(); }", "wait"),
    ],
)
def test_refused(text: str, body: str, reason: str) -> None:
    assert reason in refused(by_rows(kernel(text % body), 8))[0]


ROWS = """\
#pragma optiml scratch s f4[h]
#pragma optiml launch sums grid(cdiv(h, 32)) block(32)
#pragma optiml launch less grid(cdiv(h * w, 64)) block(64)
__global__ void sums(const float* a, float* s, int h, int w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float sum = 0.0f;
    for (int j = 0; j < w; j++) sum += a[r * w + j];
    s[r] = sum;
}
__global__ void less(const float* a, const float* s, float* out, int h, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < h * w) out[i] = a[i] - s[i / w];
}
"""


def test_a_row_s_number_stays_with_who_owns_the_row() -> None:
    made = fused_rows(kernels(parse_program(ROWS), None)[0])
    program = applied(made).program
    assert "scratch" not in program.text
    assert len(program.launches) == 1
    same(ROWS, made, {"a": ("h", "w"), "out": ("h", "w")}, {"h": 35, "w": 9})


def test_rows_of_others_are_refused() -> None:
    text = ROWS.replace("s[i / w]", "s[(i / w + 1) % h]")
    assert "another thread" in refused(fused_rows(kernels(parse_program(text), None)[0]))[0]
    text = ROWS.replace("a[r * w + j]", "a[r]")
    assert "neither walks" in refused(fused_rows(kernels(parse_program(text), None)[0]))[0]
