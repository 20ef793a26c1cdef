"""Loops whose counter or pointer moves before a round asks for it, counted from 0."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.counted import counted

from .running import same
from .shapes import applied, kernel, refused

WALK = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* x, float* y, int n, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float s = 0;
    int c = 0;
    %s
}
"""
STEP = "s = fabsf(s - x[r * n + i]); y[r * n + i] = s;"
SHAPES = {"x": ("h", "n"), "y": ("h", "n")}


@pytest.mark.parametrize(("n", "h"), [(1, 3), (2, 33), (41, 2)])
@pytest.mark.parametrize(
    "loop",
    [
        f"for (int i = n; i-- > 0;) {{ {STEP} }}",
        f"int i = n; while (i-- > 0) {{ {STEP} }}",
        f"int i = n; while (--i >= 0) {{ {STEP} }}",
        f"int i = -1; while (++i < n) {{ {STEP} }}",
        f"int i = n; while (i > 0) {{ --i; {STEP} }} c = i;",
        f"int i = n; while (i > 0) {{ i -= 1; c += 2; {STEP} }} y[r * n] = s + c;",
        f"int i = n; while (i > 0) {{ s += 1; i--; {STEP} }}",
        f"int i = n; while (true) {{ if (--i < 0) break; {STEP} }}",
        f"int i = n; for (;;) {{ if (i <= 0) break; i--; {STEP} }}",
        "const float* p = x + r * n - 1; float* q = y + r * n; for (int i = 0; i < n; ++i) { ++p; s = fabsf(s - *p); *q++ = s; }",
    ],
)
def test_what_moves_first_is_one_round_ahead(loop: str, n: int, h: int) -> None:
    text = WALK % loop
    made = counted(kernel(text), 0)
    assert "; ++k_2)" in applied(made).program.text
    same(text, made, SHAPES, {"n": n, "h": h})


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        (f"int i = n; while (i-- > 0) {{ {STEP} }} y[r * n] = i;",
         "the test of the loop changes something"),
        (f"int i = n; while (true) {{ if (--i < 0) break; {STEP} }} y[r * n] = i;",
         "the test of the loop changes something"),
        ("int i = n; do { y[r * n] = i; } while (i-- > 1);",
         "the test of the loop changes something"),
        (f"int i = n; while (i > 0) {{ s += i; i--; {STEP} }}", "`i` moves within the round"),
    ],
)  # fmt: skip
def test_what_moves_elsewhere_is_left_alone(loop: str, reason: str) -> None:
    assert refused(counted(kernel(WALK % loop), 0))[0] == reason


@pytest.mark.parametrize("move", ["t += 0.1f; {} i++;", "{} i++; t += 0.1f;"])
def test_a_float_is_rounded_in_each_round_as_before(move: str) -> None:
    step = move.format("y[r * n + i] = t;")
    text = WALK % f"int i = 0; float t = s; while (i < n) {{ {step} }}"
    made = counted(kernel(text), 0)
    assert "t += 0.1f" in applied(made).program.text
    same(text, made, SHAPES, {"n": 41, "h": 3})
