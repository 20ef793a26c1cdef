"""Quotients without the counters that do not change them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.coarser import coarser

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#define GROUP 16
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* x, const float* s, float* y, int n, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float sum = 0;
    for (int w = 0; w < n; ++w) {
        for (int k = 0; k < 4; ++k) {
            %s
        }
    }
    y[r] = sum;
}
"""
SHAPES = {"x": ("h", "4*n"), "s": ("h", "n"), "y": ("h",)}


@pytest.mark.parametrize(("n", "h"), [(1, 3), (9, 33)])
@pytest.mark.parametrize(
    ("line", "now"),
    [
        (
            "const int c = w * 4 + k; sum += x[r * 4 * n + c] * s[r * n + c / GROUP];",
            "r * n + (w / 4)",
        ),
        ("sum += x[r * 4 * n + w * 4 + k] - s[r * n + (4 * w + k) / 4];", "r * n + w]"),
        ("int c = k + (w << 2); sum += s[r * n + (4 * w + k + 4) / 8];", "(w + 1) / 2"),
        ("long c = 8l * w + 2 * k; sum += s[r * n + (c + 1 >> 3)];", "r * n + ((long)w)]"),
        ("sum += s[(8 * threadIdx.x + k) / 8];", "threadIdx.x"),
        ("sum += x[r * 4 * n + (w * 12 + k) % 4];", "r * 4 * n + k]"),
        ("sum += x[r * 4 * n + (w * 8 + 2 * (k % 2) + 1) % 4];", "r * 4 * n + ((k % 2) * 2 + 1)]"),
        (
            "sum += s[r * n + (threadIdx.x % 4 * 8 + w * 32 + 2 * k) / 32];",
            "r * n + ((unsigned int)w)]",
        ),
        ("sum += s[(threadIdx.x / 8 * 16 + k) / 8 + r * n];", "(threadIdx.x / 8) * 2"),
        ("sum += x[(w * 32 + (int)threadIdx.x) % 32 + r * 0];", "x[(int)(threadIdx.x) + r * 0]"),
    ],
)
def test_they_go(line: str, now: str, n: int, h: int) -> None:
    text = TEXT % line
    made = coarser(kernel(text))
    assert now in applied(made).program.text
    same(text, made, SHAPES, {"n": n, "h": h})


@pytest.mark.parametrize(
    "line",
    [
        "unsigned c = w * 4 + k; if (c / 4 - 2 < 3) sum += 1;",
        "size_t c = w * 4 + k; sum += (float)(c / 4 - n > 4);",
        "long c = w * 4 + k; if (c / 4 - 2u > 0) sum += 1;",
        "if ((8 * (int)threadIdx.x + k) / 8 - 5 < 0) sum += 1;",
        "long long c = (long long)w * 1073741824ll * 4 + k; if (c / 4 >= (long long)w * 1073741824ll) sum += 1;",
        "const int c = w * 4 + k; { int w = 2; sum += s[r * n + 0 * w] * (c / 4); }",
        "const int c = k * 12; for (int k = 0; k < 4; ++k) for (int j = 0; j < 4; ++j) sum += (c + k * 4 + j) / 16 * (j + 1);",
    ],
)  # fmt: skip
def test_types_and_names_are_what_they_were(line: str) -> None:
    text = TEXT % line
    made = coarser(kernel(text))
    if isinstance(made, Kernel):
        same(text, made, SHAPES, {"n": 9, "h": 33})


@pytest.mark.parametrize(
    "line",
    [
        "sum += s[r * n + (w * 4 + k + 1) / 4 % n];",
        "sum += s[r * n + (w * 4 - k + 4) / 8];",
        "sum += s[r * n + (w * 3 + k) / 12];",
        "sum += s[r * n + (w * 3 + k) / 2000000014];",  # each number up to this one took a minute
        "sum += s[r * n + (w * 4 + k + r) / 64];",
        "int c = w * 4 + k; c += 1; sum += s[c / 16];",
        "unsigned char c = w * 4 + k; sum += s[c / 16];",
        "sum += (w * 4 + k) / 4.0f;",
        "sum += s[r * n + (w * 4) / 8];",
        "sum += x[r * 4 * n + (w * 6 + k) % 4];",
        "sum += x[r * 4 * n + (w * 4 + k + 1) % 4];",
        "sum += x[r * 4 * n + (w * 4 - k + 3) % 4];",
        "sum += s[r * n + (w * 16 + (int)threadIdx.x) % 16 * 0];",
        "sum += x[((w - 3) % 4 * 4 + k + 12) / 4];",
    ],
)
def test_they_stay(line: str) -> None:
    assert "no quotient" in refused(coarser(kernel(TEXT % line)))[0]
