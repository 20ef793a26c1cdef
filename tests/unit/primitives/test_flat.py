"""Planes of threads as one line of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.flat import flat

from .running import same
from .shapes import applied, kernel, refused

PLANE = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, const float* b, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    %s
}
"""
SHAPES = {"a": ("h", "2 * w"), "b": ("w",), "out": ("h", "w")}


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        ("if (x < w && y < h) out[y * w + x] = a[y * w + x];", "out[at] = a[at];"),
        ("if (x >= w || y >= h) return;\nint k = x + w * y;\nout[k] = a[2 * k + 1];", "k = at;"),
        ("if (y >= h) return;\nif (x < w) { int n = y * w; out[n + x] = a[n + x]; }", "n + x"),
        ("if (x < w) { if (y < h) { out[(size_t)y * w + x] = b[0] * a[(size_t)y * w + x]; } }",
         "long long at"),
        ("const bool in = x < w && y < h;\nif (in) out[y * w + x] = a[y * w + x] + x;", "at % w"),
    ],
)  # fmt: skip
def test_one_index_for_both(body: str, shown: str) -> None:
    text = PLANE % body
    made = flat(kernel(text))
    program = applied(made).program
    assert shown in program.text
    assert "grid(cdiv(h * w, 32)) block(32)" in program.text
    same(text, made, SHAPES, {"w": 13, "h": 7})


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("if (x < w && y < h) out[y * w + x] = a[y * w + x] * b[x];", "asked for apart"),
        ("if (x < w && y < h) out[x * h + y] = a[y * w + x];", "asked for apart"),
        ("if (x < w && y < h) out[y * w + x] = a[2 * y * w + x];", "asked for apart"),
        ("if (x < w) out[y * w + x] = a[y * w + x];", "do not say"),
        ("if (x < w && y < h) out[y * w + x] = threadIdx.x;", "more than its index"),
        ("if (x < w && y < h) { out[y * w + x] = 1.0f; __syncthreads(); }", "wait"),
    ],
)
def test_refused(body: str, reason: str) -> None:
    assert reason in refused(flat(kernel(PLANE % body)))[0]
