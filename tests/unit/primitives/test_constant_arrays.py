"""Local arrays whose numbers stand in the text, in constant memory."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.constant_arrays import constant_arrays, in_constant_memory
from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const int* x, float* y, int n) {{
    {declared}
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = {value};
}}
"""
ARRAYS = {"x": Array("i4", ("n",)), "y": Array("f4", ("n",), "zeros")}
DIGITS = 'const char t[] = "0123456789abcdef";'


@pytest.mark.parametrize(
    ("declared", "value", "table"),
    [
        (DIGITS, "t[x[i] & 15]", 'char t_table[17] = "0123456789abcdef";'),
        (DIGITS, "fmaxf(t[x[i] & 15], 50.0f)", "t_table[17]"),
        ("const float t[3] = {0.5f, -1, 1.0f / 3};", "t[(x[i] & 7) % 3]",
         "float t_table[3] = {0.5f, -1, 1.0f / 3};"),
        ("const int t[][2] = {{1, 2}, {3, 4}};", "t[x[i] & 1][i & 1]", "int t_table[2][2] = "),
        ("short t[4] = {1, 4, 9, 16};", "t[threadIdx.x % 4]", "short t_table[4]"),
        ('const char t[] = "a\\\\b";', "t[x[i] & 1]", "char t_table[] = "),
    ],
)  # fmt: skip
def test_what_the_text_tells_lies_there(declared: str, value: str, table: str) -> None:
    text = TEXT.format(declared=declared, value=value)
    kernel = kernel_of(text)
    after = written(in_constant_memory(kernel, constant_arrays(kernel)))
    assert f"__constant__ {table}" in after or table in after
    assert declared not in after
    assert end_of(text, after, ARRAYS, {"n": 200}, {"n": 1}) == "same"


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        ("const float t[4] = {1, 2, 3, 4};", "t[1] + t[2]"),  # a compiler knows which
        ("const int t[4] = {1, 2, 3, 4}; float s = 0; for (int j = 0; j < 4; ++j) s += t[j];", "s"),
        ("int t[4] = {1, 2, 3, 4}; t[n & 3] = 5;", "t[x[i] & 3]"),
        ("int t[4] = {1, 2, 3, 4}; int& r = t[n & 3]; r = 5;", "t[x[i] & 3]"),
        ("int t[4] = {1, 2, 3, 4}; int* r = t; r[n & 3] = 5;", "t[x[i] & 3]"),
        ("int t[4] = {1, 2, 3, 4}; int* r = &t[n & 3]; *r = 5;", "t[x[i] & 3]"),
        ("const int t[4] = {1, 2, n, 4};", "t[x[i] & 3]"),
        ("int t[4];  for (int j = 0; j < 4; ++j) t[j] = j;", "t[x[i] & 3]"),
        ("__shared__ int t[4]; t[threadIdx.x & 3] = 1; __syncthreads();", "t[x[i] & 3]"),
    ],
)  # fmt: skip
def test_what_stays(declared: str, value: str) -> None:
    assert constant_arrays(kernel_of(TEXT.format(declared=declared, value=value))) == []


def test_a_function_may_change_what_is_not_constant() -> None:
    setting = "__device__ int set(int& x) { return x = 3; }\n"
    text = TEXT.format(declared="int t[4] = {1, 2, 3, 4};", value="set(t[n & 3]) + t[x[i] & 3]")
    head, kernel = text.split("\n", 1)
    assert constant_arrays(kernel_of(f"{head}\n{setting}{kernel}")) == []


def test_it_is_an_idea() -> None:
    ideas, _ = asked(ScalariseArray(), TEXT.format(declared=DIGITS, value="t[x[i] & 15]"))
    assert "keep t in constant memory, which no thread fills" in [idea.title for idea in ideas]
