"""Functions of one byte as tables of all of its values."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.looked_up import looked_up, lookups
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, refused, written

TEXT = """\
__device__ int code(char c) {
    switch (c) { case 'A': return 0; case 'C': return 1; case 'G': return 2; default: return -1; }
}
__device__ float gamma(float v, float by) { return v > 0.5f ? powf(v, by) : v / 2.0f; }
#pragma optiml launch k grid(cdiv(n, 64)) block(64) args(x, z, out, n, p)
__global__ void k(const char* x, const uchar3* z, float* out, int n, float p) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    out[i] = DOES;
}
"""
ARRAYS = {
    "x": Array("i1", ("n",), "bits"), "z": Array("u1", ("n * 3",), "bits"),
    "out": Array("f4", ("n",), "zeros"),
}  # fmt: skip


def text_of(does: str) -> str:
    return TEXT.replace("DOES", does)


@pytest.mark.parametrize(
    ("does", "tables"),
    [
        ("code(x[i])", 1),
        ("code(x[i]) * 4 + code(x[n - 1 - i])", 1),
        ("gamma(z[i].x / 255.0f, 2.0f) + gamma(z[i].y / 255.0f, 2.0f)", 1),
        ("gamma(z[i].x / 255.0f, 2.0f) + code(x[i])", 2),
        ("gamma(z[i].z / 255.0f, n / 300.0f)", 1),
        ("powf(fabsf((float)x[i]), 3.0f) * n", 1),
    ],
)
def test_they_are_looked_up(does: str, tables: int) -> None:
    text = text_of(does).replace(", p)", ")", 1).replace(", float p", "")
    made = written(looked_up(kernel_of(text)))
    assert made.count("threadIdx.x] =") == tables
    assert end_of(text, made, ARRAYS, {"n": 300}, {"n": 5}, rounds=True) == "same"


@pytest.mark.parametrize(
    "does",
    [
        "x[i] * 2.0f", "code(x[i] + i)", "gamma(out[i], 2.0f)", "gamma(x[i] * out[i], 2.0f)",
        "powf(x[i] + x[n - 1 - i], 2.0f)", "code(threadIdx.x)",
    ],
)  # fmt: skip
def test_others_stay(does: str) -> None:
    assert not lookups(kernel_of(text_of(does)))


@pytest.mark.parametrize(
    "own",
    [
        "__device__ int seen; __device__ int f(char c) { seen = c; return c > 3 ? c < 9 ? 1 : 2 : c == 7 ? 3 : 4; }",
        "__device__ int f(char c) { int v = 0; while (v < c) v += 3; return v > 3 ? v < 9 ? 1 : 2 : 4; }",
        "__device__ int f(char c) { return c > 3 ? clock() : c < 1 ? 2 : c == 2 ? 3 : 4; }",
        "__device__ int f(char c) { return threadIdx.x > 3 ? 1 : c < 1 ? 2 : c == 2 ? 3 : 4; }",
    ],
)
def test_functions_that_do_more_stay(own: str) -> None:
    assert not lookups(kernel_of(own + "\n" + text_of("f(x[i])")))


def test_a_launch_of_several_rounds_stays() -> None:
    assert "rounds" in refused(
        looked_up(kernel_of(text_of("code(x[i])").replace("args(", "repeat(3) args(", 1)))
    )
