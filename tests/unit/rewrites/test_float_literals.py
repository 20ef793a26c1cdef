"""Doubles that nobody asked for become floats; those that somebody declared stay."""

from __future__ import annotations

import numpy as np
import pytest

ACT = """
#pragma optiml launch gelu grid(cdiv(n, 64)) block(64)
#define HALF 0.5
__device__ float act(float x) { return 0.5 * x * (1.0 + erf(x / 1.41421356)); }
__global__ void gelu(const float* x, float* y, int n, float s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x; // 0.5
    int h = n * 0.5;
    if (i < n && -9.5 < x[i]) {
        float v = x[i];
        float m = exp(-v) / (1.0 + pow(v, 2)) + sqrt(fabs(v)) / n;
        float q = (i + 0.5) * s;
        y[i] = max(v, 0.0) * act(m) + (v > 1. ? 2.5e-1 : v);
        y[i] += 1e-300 * v + HALF * q;
        y[i] += h * s * 1.5;
    }
}"""


def test_literals_and_functions(propose, compiles, runs, rng):
    (found,) = propose("float_literals", ACT)
    for now in (
        "return 0.5f * x * (1.0f + erff(x / 1.41421356f));",
        "#define HALF 0.5\n",
        "// 0.5\n",
        "int h = n * 0.5;",
        "-9.5f < x[i]",
        "expf(-v) / (1.0f + powf(v, 2)) + sqrtf(fabsf(v)) / n",
        "(i + 0.5) * s",  # an index on its own: not certain in float
        "max(v, 0.0f) * act(m) + (v > 1.f ? 2.5e-1f : v)",
        "1e-300 * v + HALF * q",
        "h * s * 1.5f",
    ):
        assert now in found.text
    assert compiles(found.text).count(".f64") < compiles(ACT).count(".f64")
    x = rng.standard_normal(99).astype("f4")
    given = {"x": x, "y": np.zeros_like(x), "n": 99, "s": 1.5}
    np.testing.assert_allclose(runs(found.text, **given)["y"], runs(ACT, **given)["y"], rtol=1e-5)


def test_no_fp64_is_left(propose, compiles):
    text = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(float* __restrict__ io, size_t n) {
    for (size_t t = threadIdx.x + blockIdx.x * blockDim.x; t < n; t += gridDim.x * blockDim.x) {
        const float z = io[t];
        io[t] = z < 0. ? 0.01 * z : 1 / (1.0 + ::exp(-z)) - .5e0;
        io[t] *= 2.;
    }
}"""
    (found,) = propose("float_literals", text)
    assert ".f64" in compiles(text)
    assert ".f64" not in compiles(found.text)
    assert found.prior == 0.6


def test_casts_are_tried_late(propose, compiles):
    text = """
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* o, int n) {
    int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i < n) o[i] = sqrt((double)a[i]) * 2.0;
}"""
    (found,) = propose("float_literals", text)
    assert found.prior == 0.2
    assert "sqrtf((float)a[i]) * 2.0f" in found.text
    assert ".f64" not in compiles(found.text)


KERNEL = """
#pragma optiml launch k grid(1) block(64)
__global__ void k(const float* a, float* o, int n) {
    int i = threadIdx.x;
    if (i < n) o[i] = a[i] * 0.5;
}"""


@pytest.mark.parametrize(
    "text",
    [
        KERNEL.replace("0.5", "0.5f"),
        KERNEL.replace("const float*", "const double*"),
        KERNEL.replace("int i =", "double sum = 0; int i ="),
        KERNEL.replace("float", "T").replace("__global__", "template <typename T> __global__"),
        KERNEL.replace("a[i] * 0.5", "a[(int)(i * 0.5)]"),
        KERNEL.replace("a[i] * 0.5", "a[i] * other(0.5)"),
        KERNEL.replace("a[i] * 0.5", "a[i] * 1e60"),
        KERNEL.replace("float* o", "int* o"),
        "__device__ double f(double x) { return x; }\n" + KERNEL,
    ],
)
def test_refused(text, propose):
    assert propose("float_literals", text) == []
