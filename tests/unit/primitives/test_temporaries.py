"""Locals and casts that say double, in float."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.temporaries import in_single
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__device__ float scaled(float v) { const double by = 0.5; return (float)(by * v); }
__global__ void k(const float* a, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double sum = 0.0, most = -1e30;
    for (int j = 0; j <= i; ++j) {
        sum += static_cast<double>(a[j]) * double(scaled(a[i]));
        most = fmax(most, (double)a[j]);
    }
    if (most > 0.1 * sum) sum = most;
    o[i] = sum / (i + 1.0) + exp(-fabs(most));
}
"""
ARRAYS = {"a": Array("f4", ("n",)), "o": Array("f4", ("n",), "zeros")}


def test_all_of_it_in_float() -> None:
    after = written(in_single(kernel_of(TEXT)))
    for now in (
        "{ const float by = 0.5; return (float)(by * v); }",
        "float sum = 0.0, most = -1e30;",
        "sum += static_cast<float>(a[j]) * float(scaled(a[i]));",
        "most = fmax(most, (float)a[j]);",
        "if (most > 0.1f * sum) sum = most;",
    ):
        assert now in after
    assert end_of(TEXT, after, ARRAYS, {"n": 70}, {"n": 3}, rounds=True) == "same"


def test_a_helper_that_takes_and_gives_doubles() -> None:
    text = TEXT.replace("float scaled(float v)", "double scaled(double v)")
    after = written(in_single(kernel_of(text)))
    assert "float scaled(float v) { const float by = 0.5; return (float)(by * v); }" in after
    assert end_of(text, after, ARRAYS, {"n": 70}, {"n": 3}, rounds=True) == "same"
    alone = text.replace("double(scaled(a[i]))", "scaled(a[i])").replace("double", "float")
    alone = alone.replace("float scaled(float v)", "double scaled(double v)")
    assert "float scaled(float v)" in written(in_single(kernel_of(alone)))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("const float* a", "const double* a", "an argument is double, line 3"),
        ("float scaled(float v)", "float scaled(const double& v)", "an argument is double, line 2"),
        (
            "__device__",
            "__device__ double scaled(int v) { return v; }\n__device__ double",
            "an argument is double, line 2",
        ),
        (
            "__device__ float scaled(float v)",
            "template <class T> __device__ double scaled(T v)",
            "an argument is double, line 2",
        ),
        (
            "double(scaled(a[i]))",
            "__longlong_as_double(i)",
            "what is double goes elsewhere, line 8",
        ),
        ("(double)a[j]", "*(double*)&sum", "what is double goes elsewhere, line 9"),
    ],
)
def test_refused(old: str, new: str, why: str) -> None:
    assert refused(in_single(kernel_of(TEXT.replace(old, new)))) == why


def test_what_decides_a_whole_number_stays_exact() -> None:
    text = (
        "#pragma optiml launch k grid(1) block(64)\n"
        "__global__ void k(const float* a, int* o, int n) {\n"
        "    int i = threadIdx.x;\n    double d = a[i];\n    if (i < n) o[i] = d * d < 0.1f;\n}\n"
    )
    assert "a whole number that must be exact" in refused(in_single(kernel_of(text)))
