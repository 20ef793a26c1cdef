"""What rounds do around the loop in them goes into that loop, so that both can be one row."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.perfect import ROUNDING, perfect
from optiml_magic.kernels.primitives.unnested import unnested

from .running import same
from .shapes import applied, kernel, refused

GROUPS = """\
#pragma optiml launch k grid(cdiv(m, 64)) block(64)
__global__ void k(const float* w, const float* x, const float* s,  float* y, int m, int g, int e) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= m) return;
    float sum = 0.0f;
    for (int i = 0; i < g; i++) {
        %s
    }
    y[r] = sum;
}
"""
SHAPES = {"w": ("m", "g * 64"), "x": ("g * 64",), "s": ("m", "g"), "y": ("m",)}
SIZES = {"m": 70, "g": 3, "e": 64}
ADDED = "w[(r * g + i) * e + j] * x[i * e + j];"
PART = f"float p = 0.0f; for (int j = 0; j < e; j++) {{ p += {ADDED} }} "


@pytest.mark.parametrize(
    ("body", "rounding"),
    [
        (PART + "sum += p * s[r * g + i];", True),
        (PART.replace("p +=", "p -=") + "sum -= 2.0f * p / 4.0f;", True),
        ("float c = s[r * g + i]; for (int j = 0; j < e; j++) sum += c * " + ADDED, False),
        (("float c = s[r * g + i]; float p = 0; for (int j = 0; j < e; ++j) { float a = "
          "x[i * e + j] - c; p += a * w[(r * g + i) * e + j]; } sum += c * p;"), True),
        (("float c = s[r * g + i]; for (int j = 0; j < 64; j += 2) sum += c * "
          "(w[(r * g + i) * 64 + j] * x[i * 64 + j] + w[(r * g + i) * 64 + j + 1]);"), False),
    ],
)  # fmt: skip
def test_groups_become_one_row(body: str, rounding: bool) -> None:
    text = GROUPS % body
    made = applied(unnested(kernel(text)))
    assert made.program.text.count("for (") == 1
    assert (ROUNDING in made.arithmetic) == rounding
    same(text, made, SHAPES, SIZES, rounds=rounding)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (PART + "sum += p * p;", "not increased by a multiple"),
        (PART + "sum += p + s[i];", "not increased by a multiple"),
        (PART + "sum += p / s[i];", "not increased by a multiple"),  # of which each part may be infinite
        (PART + "sum += p * s[i]; sum *= 0.5f;", "more follows"),
        (PART.replace("p = 0.0f", "p = 1.0f") + "sum += p * s[i];", "not begun anew"),
        (PART.replace("{ ", "{ if (p > 9.0f) break; ") + "sum += p * s[i];", "a round asks for"),
        ("int p = 0; for (int j = 0; j < e; j++) p += (int)x[i * e + j]; sum += p * s[i];",
         "several types"),
        ("sum *= 0.5f; for (int j = 0; j < e; j++) sum += " + ADDED, "more than locals"),
        ("float c = sum; for (int j = 0; j < e; j++) sum += c * " + ADDED, "asks for what rounds"),
    ],
)  # fmt: skip
def test_refused(body: str, reason: str) -> None:
    assert reason in refused(perfect(kernel(GROUPS % body), 0))[0]
