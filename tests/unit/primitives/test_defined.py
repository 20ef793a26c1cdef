"""Sums and products that a launch passes, as constants of other parameters."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.fuse_elementwise import FuseElementwise
from optiml_magic.proposers.rules import plain
from optiml_magic.source.program import parse_program
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of

SIZES = {"b": 5, "h": 14}, {"b": 1, "h": 3}
TEXT = """\
#pragma optiml launch add grid(b * h / 64 + 1) block(64) args(x, y, b * h, b)
__global__ void add(const float* a, float* c, int n, int rows) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = a[i] + rows;
}
"""
ARRAYS = {"x": Array("f4", ("b", "h")), "y": Array("f4", ("b", "h"), "zeros")}


def seen(text: str) -> str:
    return plain(parse_program(text), {"b": 5, "h": 14, "n": 7}).text


@pytest.mark.parametrize(
    ("argument", "kind", "now"),
    [
        ("b * h", "int", "const int n = b * h;"),
        ("h * b + 0", "int", "const int n = h * b + 0;"),
        ("b * h", "long long", "const long long n = (long long)b * h;"),
        ("(b * h)", "unsigned int", "const unsigned int n = (unsigned int)b * h;"),
    ],
)
def test_the_kernel_says_it_as_the_launch_does(argument: str, kind: str, now: str) -> None:
    text = TEXT.replace("args(x, y, b * h", f"args(x, y, {argument}").replace("int n", f"{kind} n")
    after = seen(text)
    assert now in after
    assert "args(x, y, b, h)" in after
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("b * h, b)", "b * h - 1, b)"), ("b * h, b)", "b * h / 2 * 2, b)"),
        ("if (i < n)", "n -= 1; if (i < n)"), ("int n,", "float n,"), ("b * h, b)", "size(x), b)"),
    ],
)  # fmt: skip
def test_others_stay_parameters(old: str, new: str) -> None:
    text = TEXT.replace(old, new)
    assert "const int n =" not in seen(text)
    assert " n," in seen(text).split("__global__")[1].split("{")[0]


def test_a_size_that_is_passed_twice_is_one() -> None:
    text = """\
#pragma optiml launch product grid(cdiv(n, 16), cdiv(n, 16)) block(16, 16) args(x, y, out, n, n, d)
__global__ void product(const float* a, const float* b, float* c, int m, int k, int deep) {
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= m || j >= k) return;
    float s = 0.0f;
    for (int q = 0; q < deep; q++) s += a[i * deep + q] * b[q * k + j];
    c[i * k + j] = s;
}
"""
    after = plain(parse_program(text), {"n": 20, "d": 9}).text
    assert "const int m = n;" in after
    assert "const int k = n;" in after
    ideas, refused = asked(BlockedProduct(), after)
    assert ideas, refused
    arrays = {
        "x": Array("f4", ("n", "d")),
        "y": Array("f4", ("d", "n")),
        "out": Array("f4", ("n", "n")),
    }
    assert end_of(text, after, arrays, {"n": 20, "d": 9}, {"n": 3, "d": 2}) == "same"


def test_an_activation_by_the_number_of_all_is_one_with_its_layer() -> None:
    text = """\
#pragma optiml launch layer grid(cdiv(h, 16), cdiv(b, 16)) block(16, 16) args(x, w, y, b, h)
#pragma optiml launch relu grid((b * h + 63) / 64) block(64) args(y, b * h)
__global__ void layer(const float* in, const float* w, float* out, int rows, int columns) {
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i < rows && j < columns) out[i * columns + j] = in[i * columns + j] * w[j];
}
__global__ void relu(float* v, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) v[i] = fmaxf(v[i], 0.0f);
}
"""
    after = seen(text)
    assert len(kernels(parse_program(after), None)) == len(("layer", "relu"))
    ideas, refused = asked(FuseElementwise(), after)
    assert ideas, refused
    arrays = {**ARRAYS, "w": Array("f4", ("h",))}
    assert end_of(text, after, arrays, *SIZES) == "same"
