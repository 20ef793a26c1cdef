"""Templates of functions as what a kernel's calls make of them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.concrete import all_concrete, concrete
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, refused

TEXT = """\
template <typename T> __device__ T twice(T v) { return v + v; }
template <typename T, int BY> __device__ T at(const T* a, int i, T other) {
    if (i < 0) return other;
    return a[i] * BY;
}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const int* m, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = DOES;
}
"""
ARRAYS = {
    "x": Array("f4", ("n",)), "m": Array("i4", ("n",)), "out": Array("f4", ("n",), "zeros"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("does", "names"),
    [
        ("twice(x[i])", {"twice_float"}),
        ("twice(m[i])", {"twice_int"}),
        ("twice(x[i]) + twice(m[i])", {"twice_float", "twice_int"}),
        ("twice<float>(m[i])", {"twice_float"}),
        ("at<float, 3>(x, i - 1, 0.5f)", {"at_float_3"}),
        ("at<float, 3>(x, i - 1, m[i])", {"at_float_3"}),
        ("twice(at<int, 2>(m, i - 1, n))", {"twice_int", "at_int_2"}),
    ],
)
def test_calls_are_of_plain_functions(does: str, names: set[str]) -> None:
    text = TEXT.replace("DOES", does)
    made = all_concrete(parse_program(text)).text
    body = made[made.index("__global__") :]
    assert all(f"{name}(" in body for name in names)
    assert "<" not in body.split("out[i] =")[1]
    assert end_of(text, made, ARRAYS, {"n": 130}, {"n": 3}) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("DOES", "x[i]"),
        (
            "template <typename T> __device__ T twice(T v)",
            "template <typename... T> __device__ float twice(T... v)",
        ),
        ("T twice(T v) { return v + v; }", "T twice(T v) { float T_ = v; return T_ /* T */ + v; }"),
    ],
)
def test_others_stay(old: str, new: str) -> None:
    text = TEXT.replace(old, new).replace("DOES", "twice(x[i])")
    assert refused(concrete(kernel_of(text)))


LEADING = """\
template <class T> __device__ T* next(T* p) { return p + 1; }
template <class T> __device__ float twice(T* p) { const T v = *p; T const w = v; return v + w; }
template <class T> __device__ float first(const T* p) { T v = *p; v += 1; return v; }
typedef const float* Row;
struct Rows { const float* x; };
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const float* __restrict__ y, float* z, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float c[3] = {1, 2, 3};
    float f[3] = {1, 2, 3};
    Row row = x;
    auto any = x;
    Rows rows = {x};
    volatile float* seen = z;
    float* const own = z;
    if (i < n) out[i] = DOES;
}
"""


@pytest.mark.parametrize(
    ("does", "name"),
    [
        ("*next(x + i - 1)", "next_const_float"),
        ("*next(i - 1 + y)", "next_const_float"),
        ("*next(&y[i] - 1)", "next_const_float"),
        ("*next(c)", "next_const_float"),
        ("*next(f)", "next_float"),
        ("*next(own + i - 1)", "next_float"),
        ("*next<const float>(z + i - 1)", "next_const_float"),
        ("twice(&x[i])", "twice_const_float"),
        ("twice(z + i)", "twice_float"),
        ("first(x + i)", "first_float"),
        ("first(z + i)", "first_float"),
        ("first(f)", "first_float"),
        ("*next(row + i - 1)", ""),  # the reading of types has no const
        ("*next(any + i - 1)", ""),
        ("*next(rows.x + i - 1)", ""),
        ("*next(seen + i - 1)", ""),
        ("*next(i > 0 ? x + i - 1 : x)", ""),
    ],
)
def test_what_a_pointer_leads_to_may_be_const(does: str, name: str) -> None:
    text = LEADING.replace("DOES", does)
    made = all_concrete(parse_program(text)).text
    if not name:
        assert made == text
        return
    assert f"{name}(" in made[made.index("__global__") :]
    given = ("x", "y", "z")
    arrays = {n: Array("f4", ("n",)) for n in given} | {"out": Array("f4", ("n",), "zeros")}
    assert end_of(text, made, arrays, {"n": 130}, {"n": 3}) == "same"
