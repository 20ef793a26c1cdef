"""Doubles that nobody asked for become floats; those that somebody wrote stay."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.precision import in_float
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

ACT = """\
#pragma optiml launch gelu grid(cdiv(n, 64)) block(64)
#define HALF 0.5
__device__ float act(float x) { return 0.5 * x * (1.0 + erf(x / 1.41421356)); }
__global__ void gelu(const float* x, float* y, int n, float s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; // 0.5
    int h = n * 0.5;
    if (i < n && -9.5 < x[i]) {
        float v = x[i];
        float m = exp(-v) / (1.0 + pow(v, 2)) + sqrt(fabs(v)) / n;
        m += v / sqrt(2.0 * 3.14159265);
        float q = (i + 0.5) * s;
        y[i] = max(v, 0.0) * act(m) + (v > 1. ? 2.5e-1 : v);
        y[i] += 1e-300 * v + 0.25 * q;
        y[i] += h * s * 1.5;
        y[i] *= HALF;
    }
}
"""
ONE = """\
#pragma optiml launch k grid(1) block(64)
__global__ void k(const float* a, float* o, int n) {
    int i = threadIdx.x;
    if (i < n) o[i] = a[i] * 0.5;
}
"""


def test_what_changes_and_what_stays() -> None:
    after = written(in_float(kernel_of(ACT)))
    for now in (
        "return 0.5f * x * (1.0f + erff(x / 1.41421356f));",
        "#define HALF 0.5\n",
        "// 0.5\n",
        "int h = n * 0.5;",
        "-9.5f < x[i]",
        "exp(-v) / (1.0f + v * v) + sqrt(fabs(v)) / n",
        "m += v / sqrtf(2.0f * 3.14159265f);",
        "(i + 0.5) * s",  # an index on its own: a float may not hold it
        "max(v, 0.0f) * act(m) + (v > 1.f ? 2.5e-1f : v)",
        "1e-300 * v + 0.25 * q",  # no float is so small
        "h * s * 1.5f",
        "y[i] *= 0.5f;",
    ):
        assert now in after
    arrays = {"x": Array("f4", ("n",)), "y": Array("f4", ("n",), "zeros")}
    assert end_of(ACT, after, arrays, {"n": 99}, {"n": 5}, rounds=True, s=1.5) == "same"


@pytest.mark.parametrize(
    ("old", "new", "now"),
    [
        ("a[i] * 0.5", "(float)(a[i] * 0.5)", "(float)(a[i] * 0.5f)"),
        ("a[i] * 0.5", "fmaxf(a[i] - 1.0, 0.0f)", "fmaxf(a[i] - 1.0f, 0.0f)"),
        ("a[i] * 0.5", "std::pow(a[i], 3)", "a[i] * a[i] * a[i]"),
        ("a[i] * 0.5", "::exp(exp(2.0 * a[i]))", "expf(expf(2.0f * a[i]))"),
        ("float", "T", "a[i] * 0.5f"),
        ("a[i] * 0.5;", "a[i] * 0.5; double sum = 0.25;", "a[i] * 0.5f; double sum = 0.25;"),
    ],
)
def test_spellings(old: str, new: str, now: str) -> None:
    text = ONE.replace(old, new)
    if new == "T":
        text = text.replace("__global__", "template <typename T>\n__global__")
        text = text.replace("launch k", "launch k<float>")
    assert now in written(in_float(kernel_of(text)))


@pytest.mark.parametrize(
    "text",
    [
        ONE.replace("0.5", "0.5f"),
        ONE.replace("const float*", "const double*"),
        ONE.replace("float* o", "double* o"),
        ONE.replace("a[i] * 0.5", "a[(int)(i * 0.5)]"),
        ONE.replace("a[i] * 0.5", "a[i] * other(0.5)"),
        ONE.replace("a[i] * 0.5", "a[i] * 1e60"),
        ONE.replace("a[i] * 0.5", "0.5"),  # converted while compiling
        ONE.replace("a[i] * 0.5", "(double)a[i] * 0.5"),
        ONE.replace("o[i] = a[i] * 0.5", "{ double s = a[i]; o[i] = s * 0.5; }"),
        ONE.replace("float* o", "int* o"),
        "template <class U> __device__ U half_of(U x) { return x * 0.5; }\n"
        + ONE.replace("a[i] * 0.5", "half_of(a[i])"),
    ],
)
def test_refused(text: str) -> None:
    assert "nothing is double" in refused(in_float(kernel_of(text)))


def test_what_decides_a_whole_number_stays_exact() -> None:
    text = ONE.replace("float* o", "int* o").replace("a[i] * 0.5", "a[i] < a[0] * 0.1")
    assert "a whole number that must be exact" in refused(in_float(kernel_of(text)))
    assert "0.5f" in written(in_float(kernel_of(text.replace("0.1", "0.5"))))
