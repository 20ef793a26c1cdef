"""Constants of a text as macros, where their names are nothing else."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.named_numbers import named_numbers
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array

from .alike import end_of

TEXT = """\
{0}
#pragma optiml launch k grid(cdiv(H * W, 64)) block(64)
__global__ void k(const float* a, float* o) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < H * W) o[i % W * H + i / W] = a[i];
}}
"""


@pytest.mark.parametrize(
    "said",
    [
        "constexpr int H = 7;\nconstexpr int W = H + 2;  // columns",
        "static const int H = 7;\nconst int W = 9;",
        "enum { H = 7, W = 9 };",
        "enum {\n    H = 7,  // rows\n    W = 9,\n};",
    ],
)
def test_a_whole_number_is_a_macro(said: str) -> None:
    text = TEXT.format(said)
    after = named_numbers(parse_program(text)).text
    assert "#define H 7" in after
    assert "#define W 9" in after
    assert after.partition("\n#pragma")[2] == text.partition("\n#pragma")[2]
    arrays = {"a": Array("f4", ("63",)), "o": Array("f4", ("63",), "zeros")}
    assert end_of(text, after, arrays, {}, {}) == "same"


@pytest.mark.parametrize(
    "said",
    [
        "constexpr int W = 9; struct s { int x; };\n__device__ int f(s v) { return v.W; }",
        "constexpr int W = 9;\n__device__ int f(int W) { return W; }",
        "constexpr int W = 9;\n__device__ int f() { int a, W; a = W; return a; }",
        "constexpr int W = 9;\n__device__ int f(float* W) { return W[0]; }",
        "constexpr int W = 9;\n__device__ const int* f() { return &W; }",
        "constexpr int W = 9;\n#ifdef W\n#endif",
        "constexpr int W = 9;\n#include <cooperative_groups.h>",
        "template <class T>\nconstexpr int W = 9;",
        "constexpr unsigned W = 9;",
        "constexpr int W = f(3);",
        "namespace s { constexpr int W = 9; }",
        "struct s { enum { W = 9 }; };",
        "enum { V, W = 9 };",
    ],
)
def test_what_may_be_something_else_stays(said: str) -> None:
    text = TEXT.format("#define H 7\n" + said)
    assert named_numbers(parse_program(text)).text == text
