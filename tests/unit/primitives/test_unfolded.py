"""Functions that combine, written where loops call them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.unfolded import unfolded
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked

from .running import same
from .shapes import applied, kernel, refused

ROWS = """\
{}
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int m) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = a[i * m];
    int at = 0;
    for (int j = 0; j < m; ++j) {{
        {}
    }}
    out[i] = s + at;
}}
"""
SHAPES = {"a": ("n", "m"), "out": ("n",)}
VALUE = "a[i * m + j]"
CASES = {
    "greatest": ("__device__ float maxf(float p, float q) { return p > q ? p : q; }",
                 f"s = maxf(s, {VALUE});"),
    "branches": ("__device__ float maxf(float p, float q) { if (p > q) return p; return q; }",
                 f"s = maxf({VALUE}, s);"),
    "both branches": (("__device__ float least(float p, float q) { if (p < q) { return p; } "
                      "else { return q; } }"), f"s = least({VALUE}, s);"),
    "any type": ("template <class T> __device__ T add(T p, T q) { return p + q; }",
                 f"s = add(s, {VALUE} * 0.5f);"),
    "a reference": ("__device__ void add(float& p, float q) { p += q * q; }", f"add(s, {VALUE});"),
    "a place": (("__device__ void better(float& top, int& at, float v, int j) "
                "{ if (v > top) { top = v; at = j; } }"), f"better(s, at, {VALUE}, j);"),
    "a name that is there": ("__device__ float add(float m, float n) { return m + n; }",
                             f"s = add(s, {VALUE} + n);"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_what_a_round_hands_on_is_seen(case: str) -> None:
    text = ROWS.format(*CASES[case])
    made = unfolded(kernel(text))
    inner = applied(made).program.text.partition("for (")[2]
    assert not any(f"{name}(" in inner for name in ("maxf", "least", "add", "better"))
    same(text, made, SHAPES, {"n": 70, "m": 9})
    assert asked(RowToLanes(), text)[0]


LEFT = {
    "another type": ("__device__ double add(double p, double q) { return p + q; }", f"s = add(s, {VALUE});"),
    "the type of the other": ("template <class T, class U> __device__ T add(U p, T q) { return p + q; }",
                          f"s = add(s, (int){VALUE});"),
    "an array": ("__device__ float add(const float* p, float q) { return p[0] + q; }", "s = add(a, s);"),
    "locals": ("__device__ float add(float p, float q) { float r = p + q; return r; }",
               f"s = add(s, {VALUE});"),
    "none handed on": ("__device__ float twice(float p) { return p + p; }", f"s += twice({VALUE});"),
    "a changed copy": ("__device__ float add(float p, float q) { return p += q; }",
                       f"s = add(s, {VALUE});"),
    "a hidden name": ("__device__ float at; __device__ float add(float p, float q) { return p + at; }",
                      f"s = add(s, {VALUE});"),
}  # fmt: skip


@pytest.mark.parametrize("case", LEFT)
def test_calls_that_stay(case: str) -> None:
    reason, _ = refused(unfolded(kernel(ROWS.format(*LEFT[case]))))
    assert reason == "no function of its own changes what its rounds hand on"
