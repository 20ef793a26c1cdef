"""Loops that end once their counter is beyond a bound, as rounds that are passed over."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.passed_over import passed_over
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, refused, written

CAUSAL = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float sum = 0.0f;
    for (int j = 0; j < n; j++) {
        if (j > i) break;
        sum += x[j] * i;
    }
    out[i] = sum;
}
"""
ARRAYS = {"x": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}


@pytest.mark.parametrize("test", ["j > i", "j >= i", "i < j", "i / 2 <= j"])
def test_rounds_beyond_a_bound_are_passed_over(test: str) -> None:
    text = CAUSAL.replace("if (j > i) break;", f"if ({test}) {{ break; }}")
    made = written(passed_over(kernel_of(text)))
    assert "continue;" in made
    assert "break;" not in made
    assert end_of(text, made, ARRAYS, {"n": 37}, {"n": 5}) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("j > i", "j < i"),
        ("j > i", "x[j] > i"),
        ("j > i", "j > x[i]"),
        ("j > i", "j > i || sum > 9.0f"),
        ("j > i", "j > sum"),
        ("j > i) break", "j > i) { sum += 1.0f; break; }"),
        (
            "if (j > i) break;\n        sum += x[j] * i;",
            "sum += x[j] * i;\n        if (j > i) break;",
        ),
        ("int j = 0; j < n; j++", "int j = n - 1; j >= 0; j--"),
        ("int j = 0; j < n; j++", "int j = 0; j < n; j += 2"),
    ],
)
def test_other_ends_stay(old: str, new: str) -> None:
    text = CAUSAL.replace(old, new)
    assert text != CAUSAL
    assert refused(passed_over(kernel_of(text)))
