"""What a thread has just stored, asked for as the local that it stored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.read_back import read_back
from optiml_magic.model.facts import ArrayFacts, LaunchFacts
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* y, float* z, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = x[i] * 0.5f;
    %s
}
"""
ARRAYS = {"x": Array("f4", ("n",)), "y": Array("f4", ("n",)), "z": Array("f4", ("n", "m"))}


def made(body: str) -> Kernel | Refused:
    return read_back(kernel_of(TEXT % body))


@pytest.mark.parametrize(
    ("body", "asks"),
    sampled([
        ("y[i] = s; for (int j = 0; j < m; j++) z[i * m + j] -= y[i];", "-= y_here"),
        ("y[i] = s + 1; s = 3; for (int j = 0; j < m; j++) z[i * m + j] = y[i] * s;", "y_here * s"),
        ("float* p = y + i; *p = s; p[0] = s; for (int j = 0; j < m; j++) z[i * m + j] = y[i];",
         "= y_here"),
        ("for (int j = 0; j < m; j++) { z[i * m + j] = s + j; y[i] = z[i * m + j]; }",
         "y[i] = z_here"),
        ("if (i > 3) { y[i] = s; z[i * m] = y[i]; } z[i * m + 1] = y[i];", "z[i * m] = y_here"),
        ("y[i] = s; float t = y[i]; y[i] = t + 1; z[i * m] = y[i];", "z[i * m] = y_here"),
    ], 2),
)  # fmt: skip
def test_a_local_is_what_was_stored(body: str, asks: str) -> None:
    after = written(made(body))
    assert asks in after
    assert end_of(TEXT % body, after, ARRAYS, {"n": 40, "m": 5}, {"n": 33, "m": 2}) == "same"


@pytest.mark.parametrize(
    "body",
    sampled([
        "y[i] = s; i = n - 1 - i; z[i * m] = y[i];",
        "y[i] = s; for (int j = 0; j < m; j++) { z[i * m + j] = y[i]; y[i] = j; }",
        "y[i] = s; y[(i + 1) % n] = 2; z[i * m] = y[i];",
        "y[i] = s; z[i * m] = y[n - 1 - i];",
        "y[i] = s; atomicAdd(&y[0], 1.0f); z[i * m] = y[i];",
        "y[i] = s; auto f = [&]() { return y[i]; }; y[i] = 2; z[i * m] = f();",
        "y[i] = s; __threadfence(); z[i * m] = y[i];",
        "y[i] = s; __syncthreads(); z[i * m] = y[i];",
        "volatile float* v = y; v[i] = s; z[i * m] = v[i];",
        "if (i > 3) { y[i] = s; } z[i * m] = y[i];",
        "((int*)y)[i] = 3; z[i * m] = y[i];",
    ], 3),
)  # fmt: skip
def test_what_may_be_another_element_by_then_is_loaded(body: str) -> None:
    refused(made(body))


def test_arrays_that_may_be_one_are_asked_anew() -> None:
    kernel = kernel_of(TEXT % "y[i] = s; z[n - 1 - i] = 1; z[i * m] = y[i];")
    assert isinstance(read_back(kernel), Kernel)
    both = ArrayFacts("y", "inout", "f4", (40,), 160, 256)
    facts = LaunchFacts("k", 1, (2, 1, 1), (32, 1, 1), {"y": both, "z": both}, {"n": 40, "m": 1})
    refused(read_back(replace(kernel, facts=facts)))
