"""Rounds that take their number apart have a loop for each part."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.digit_loops import digit_loops

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(c, 32)) block(32)
__global__ void k(const float* x, float* out, int n, int c, int h, int w) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= c) return;
    float s = 0;
    int plane = h * w;
    %s
    out[r] = s;
}
"""
SHAPES = {"x": ("n", "c", "h", "w"), "out": ("c",)}
SIZES = {"n": 2, "c": 37, "h": 3, "w": 5}
LOOP = "for (int k = 0; k < n * h * w; k++) { %s }"
PLACE = "s += x[(k / plane * c + r) * plane + k % plane];"


@pytest.mark.parametrize(
    ("body", "loops"),
    [
        (LOOP % PLACE, 2),
        (LOOP % "int j = k / (h * w), p = k % (h * w); s += x[(j * c + r) * h * w + p] * p;", 2),
        (LOOP % "int col = k % w, row = k / w % h, j = k / w / h; "
                "s += x[((j * c + r) * h + h - 1 - row) * w + col] * row;", 3),
        (LOOP % "int t = k, col = t % w, u = t / w; s += x[(u / h * c + r) * plane + u % h * w + col] + u;", 3),
        (LOOP % f"if (k % plane == 1) continue; {PLACE}", 2),
        (LOOP % f"{PLACE} if (k > 7) s *= 0.5f;", 2),
        (("unsigned all = plane * n; for (unsigned k = 0; k < n * plane; ++k) "
         "s += x[(k / plane * c + r) * plane + k % plane];"), 2),
        ("for (int b = 0; b < 2; b++) " + LOOP % PLACE, 3),
    ],
)  # fmt: skip
def test_each_digit_has_a_loop(body: str, loops: int) -> None:
    text = TEXT % body
    made = applied(digit_loops(kernel(text)))
    assert made.program.text.count("for (") == loops
    same(text, made, SHAPES, SIZES)


@pytest.mark.parametrize(
    "body",
    [
        LOOP % f"if (s > 9) break; {PLACE}",
        LOOP.replace("k = 0", "k = 1") % PLACE,
        LOOP.replace("k++", "k += 2") % PLACE,
        LOOP.replace("n * h * w", "n * h * w - 1") % PLACE,
        LOOP % "s += x[k / w * w + k % w];",
        LOOP % "s += x[k] * (k % w);",
        LOOP % "s += x[(k / (r + 1) * c + r) % (n * plane) + k % (r + 1)];",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(digit_loops(kernel(TEXT % body)))[0] == "no loop takes its counter apart"  # fmt: skip
