"""Numbers that a launch passes, as constants of its kernel."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.apart import apart
from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.kernels.primitives.fused import fused
from optiml_magic.kernels.primitives.passed import passed
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array

from .alike import end_of, written

SCALED = """\
__global__ void scale(const float* x, float* y, float a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a * x[i];
}
__global__ void add(float* y, unsigned c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += c;
}
#pragma optiml launch scale grid(cdiv(n, 64)) block(64) args(x, y, -2, n)
#pragma optiml launch add grid(cdiv(n, 64)) block(64) args(y, 3, n)
"""
ARRAYS = {"x": Array("f4", ("n",)), "y": Array("f4", ("n",), "zeros")}
SWEPT = """\
__global__ void sweep(int colour, const float* x, float* y, int n, bool twice) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && i % 2 == colour) y[i] = x[i] * (twice ? 2 : 1);
}
#pragma optiml launch sweep grid(cdiv(n, 64)) block(64) args(0, x, y, n, 1)
#pragma optiml launch sweep grid(cdiv(n, 64)) block(64) args(1, x, y, n, 2 - 2)
"""


def test_numbers_become_constants_of_the_type_of_their_parameter() -> None:
    after = passed(parse_program(SCALED))
    assert "const float a = -2;" in after.text
    assert "const unsigned c = 3;" in after.text
    assert "scale(const float* x, float* y, int n)" in after.text
    assert [[str(a) for a in d.args or ()] for d in after.launches] == [["x", "y", "n"], ["y", "n"]]
    assert passed(after) is after
    assert end_of(SCALED, after.text, ARRAYS, {"n": 70}, {"n": 3}) == "same"


def test_such_launches_are_one() -> None:
    first, _ = kernels(passed(parse_program(SCALED)), None)
    made = written(fused(first))
    assert made.count("__global__") == 1
    assert end_of(SCALED, made, ARRAYS, {"n": 70}, {"n": 3}) == "same"


def test_the_same_name_for_two_numbers_is_each_kernels_own() -> None:
    text = SCALED.replace("unsigned c", "float a").replace("+= c", "+= a")
    first, _ = kernels(passed(parse_program(text)), None)
    made = fused(first)
    after = made.program.text if isinstance(made, Kernel) else text
    assert end_of(text, after, ARRAYS, {"n": 70}, {"n": 3}) == "same"


def test_each_launch_of_a_kernel_has_its_own() -> None:
    after = passed(apart(parse_program(SWEPT)))
    assert "const int colour = 0;" in after.text
    assert "const int colour = 1;" in after.text
    assert "const bool twice = 0;" in after.text
    assert "sweep_2(const float* x, float* y, int n)" in after.text
    assert end_of(SWEPT, after.text, ARRAYS, {"n": 70}, {"n": 3}) == "same"


def test_a_kernel_of_which_all_parameters_are_numbers_has_none() -> None:
    text = """\
__device__ float out[4];
__global__ void fill(float a, int n) {
    if (threadIdx.x < n) out[threadIdx.x] = a;
}
#pragma optiml launch fill grid(1) block(32) args(7, 4)
"""
    after = passed(parse_program(text))
    assert "fill()" in after.text
    assert after.launches[0].args == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("if (i < n) y[i] = a", "a += 1; if (i < n) y[i] = a"),
        ("if (i < n) y[i] = a", "float* p = &a; *p = 1; if (i < n) y[i] = a"),
        ("if (i < n) y[i] = a", "{ int a = 1; y[i] = a; } if (i < n) y[i] = a"),
        ("args(x, y, -2, n)", "args(x, y, m, n)"),
        ("float a,", "unsigned char a,"),
        ("__global__ void scale(", "#define HEAD __global__ void scale(\nHEAD "),
        ("__global__ void add", "void host() { scale(0, 0, 0, 0); }\n__global__ void add"),
    ],
    ids=["changed", "by its address", "hidden", "a name", "too narrow", "a macro", "called"],
)
def test_those_that_stay(old: str, new: str) -> None:
    text = SCALED.replace(old, new).replace("args(y, 3, n)", "args(y, c, n)")
    program = parse_program(text)
    assert passed(program) is program
