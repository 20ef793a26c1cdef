"""Loops that sum up what all threads have alike beside their own become two loops."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.distributed import distributed

from .running import same_of_many as same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* f, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
SHAPES = {"a": ("n + m",), "f": ("m",), "out": ("n",)}
MEAN = "float s = 0.0f, w = 0.0f; for (int j = 0; j < m; j++) { %s } out[i] = s / w;"


@pytest.mark.parametrize(
    ("body", "loops"),
    [
        (MEAN % "float p = f[j] * f[j]; s += p * a[i + j]; w += p;", 2),
        (MEAN % "float p = f[j] * f[j], q = a[i + j]; s += p * q; w += p;", 2),
        (MEAN % "for (int q = 0; q < 3; ++q) { if (q > 1) w += f[j]; s += a[i + j] * q; }", 4),
        (("float s = 0.0f, t = 0.0f; for (int j = 0; j < m; ++j) { s += a[i + j]; t += f[j]; } "
          "s /= m; t /= m; float c = 0.0f, d = 0.0f; for (int j = 0; j < m; ++j) { "
          "float x = a[i + j] - s, y = f[j] - t; c += x * y; d += y * y; } out[i] = c / d;"), 4),
    ],
)  # fmt: skip
def test_that_part_comes_first(body: str, loops: int) -> None:
    text = TEXT % body
    made = distributed(kernel(text))
    assert applied(made).program.text.count("for (") == loops
    same(text, made, SHAPES, {"n": 150, "m": 7})


@pytest.mark.parametrize(
    "round_",
    [
        "s += a[i + j]; w += a[i] * f[j];",  # both are the thread's own
        "w += f[j]; s += w * a[i + j];",  # a running sum
        "w += f[j]; s += a[i + j]; if (s > 9.0f) break;",
        "w += out[j]; s += a[i + j];",  # which threads write
        "if (f[j] > 0.0f) { w += f[j]; s += a[i + j]; }",  # one statement does both
        "w = a[i]; w += f[j]; s += a[i + j];",
    ],
)
def test_refused(round_: str) -> None:
    assert "no loop sums up" in refused(distributed(kernel(TEXT % (MEAN % round_))))[0]
