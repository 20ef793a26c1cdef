"""Branches of which both ways add one element."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.unparted import unparted
from optiml_magic.kernels.primitives.unstaged import unstaged
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
__constant__ float f[3] = {1, -2, 4};
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int m) {
    int x = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    if (x >= n) return;
    float s = 0;
    for (int j = 0; j < 3; ++j) {
        BODY
    }
    out[x] = s;
}
"""
BODY = (
    "if (t + j >= 1 && t + j < 65) s += f[j] * (x + j <= n ? a[x + j - 1] : 0.0f); "
    "else { int g = x + j - 1; if (g >= 0 && g < n) s += f[j] * a[g]; }"
)
STAGED = """\
__constant__ float f[3] = {1, -2, 4};
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, float* out, int n, int m) {
    __shared__ float own[64];
    int x = blockIdx.x * 64 + threadIdx.x, t = threadIdx.x;
    own[t] = x < n ? a[x] : 0.0f;
    __syncthreads();
    if (x < n) {
        float s = 0;
        for (int j = 0; j < 3; ++j) {
            if (t + j >= 1 && t + j < 65) s += f[j] * own[t + j - 1];
            else if (x + j >= 1 && x + j - 1 < n) s += f[j] * a[x + j - 1];
        }
        out[x] = s;
    }
}
"""


def text_of(body: str) -> str:
    return TEXT.replace("BODY", body)


def ends(before: str, after: str) -> str:
    arrays = {"a": Array("f4", ("n",)), "out": Array("f4", ("n",), "zeros")}
    return end_of(before, after, arrays, {"n": 150, "m": 3}, {"n": 64, "m": 1})


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (BODY, 1),
        (BODY.replace("f[j] * ", ""), 1),
        (
            (
                "if (t + j < 1 || t + j >= 65) { if (x + j >= 1 && x + j - 1 < n) s += a[x + j - 1]; } "
                "else s += x + j <= n ? a[x + j - 1] : 0;"
            ),
            1,
        ),
        ("if (x + j + 1 < n) s += a[x + j]; else if (x + j < n) s += a[x + j];", 0),
    ],
)
def test_one_way_is_left(body: str, told: int) -> None:
    before = text_of(body)
    made = unparted(kernel_of(before))
    after = written(made)
    assert "else" not in after
    assert "? a" not in after
    assert isinstance(made, Kernel)
    assert len(made.arithmetic) == told
    assert ends(before, after) == "same"


def test_whole_numbers_add_zero_exactly() -> None:
    before = text_of(BODY).replace("float s", "int s").replace("f[j] * ", "").replace(".0f", "")
    before = before.replace("const float* a", "const int* a")
    made = unparted(kernel_of(before))
    assert isinstance(made, Kernel)
    assert made.arithmetic == ()


def test_a_tile_with_what_lies_beside_it_in_memory() -> None:
    made = unstaged(kernel_of(STAGED))
    assert isinstance(made, Kernel)
    after = written(unparted(made))
    assert "else" not in after
    assert ends(STAGED, after) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x + j <= n ?", "x + j < n ?"),
        ("x + j <= n ?", "x + j <= n && x > 2 ?"),
        ("g >= 0 &&", "g > 0 &&"),
        ("g >= 0 && g < n", "g < n - 1"),
        ("g < n)", "g < n && t > 4)"),
        ("t + j >= 1 &&", "t + j >= 0 &&"),
        ("a[g]", "a[g / 2]"),
        ("int g = x + j - 1", "int g = x - 1"),
        (": 0.0f", ": 1.0f"),
        (": 0.0f", ": a[0]"),
        ("s += f[j] * a[g]", "s -= f[j] * a[g]"),
        ("s += f[j] * a[g]", "s = f[j] * a[g]"),
        ("s += f[j] * a[g]", "s += f[0] * a[g]"),
        ("s += f[j] * (x", "s += f[j] + (x"),
        ("s += f[j] * (x", "s += 1.0f + f[j] * (x"),
        ("f[j] * a[g];", "f[j] * a[g]; else s += 1;"),
        ("f[j] * a[g];", "{ f[j] * a[g]; ++s; }"),
        ("int g =", "int j = 2, g ="),
        ("int g =", "s += 1; int g ="),
        ("if (t + j >= 1", "if (a[x] > 0 && t + j >= 1"),
        ("? a[x + j - 1]", "? 2 * a[x + j - 1]"),
    ],
)
def test_refused(old: str, new: str) -> None:
    body = BODY.replace(old, new)
    assert body != BODY
    if "{ f[j]" in body:
        body = body.replace("s += { f[j] * a[g]; ++s; }", "{ s += f[j] * a[g]; ++s; }")
    assert "both ways" in refused(unparted(kernel_of(text_of(body))))


@pytest.mark.parametrize(
    ("element", "total", "factor", "zero", "same"),
    [
        ("int", "long long", "f[j] * ", "0u", False),
        ("int", "float", "", "0u", False),
        ("signed char", "long long", "f[j] * ", "0u", False),
        ("int", "int", "0.1f * f[j] * ", "0.0", False),
        ("short", "int", "0.1f * f[j] * ", "0.0", False),
        ("unsigned char", "long long", "0.1f * f[j] * ", "0.0", False),
        ("float", "float", "f[j] * ", "0.0", False),
        ("unsigned char", "int", "f[j] * ", "0", True),
        ("short", "int", "f[j] * ", "0", True),
        ("unsigned", "long long", "f[j] * ", "0u", True),
        ("int", "long long", "f[j] * ", "0", True),
    ],
)
def test_zero_counts_as_an_element_does(
    element: str, total: str, factor: str, zero: str, same: bool
) -> None:
    codes = {"int": "i4", "unsigned": "u4", "signed char": "i1", "unsigned char": "u1",
             "short": "i2", "float": "f4", "long long": "i8"}  # fmt: skip
    before = text_of(BODY.replace("f[j] * ", factor).replace("0.0f", zero))
    before = before.replace("const float* a, float*", f"const {element}* a, {total}*")
    before = before.replace("float s", f"{total} s").replace("float f[", "int f[")
    made = unparted(kernel_of(before))
    if not same:
        assert "both ways" in refused(made)
        return
    arrays = {"a": Array(codes[element], ("n",)), "out": Array(codes[total], ("n",), "zeros")}
    after = written(made)
    assert end_of(before, after, arrays, {"n": 150, "m": 3}, {"n": 64, "m": 1}) == "same"


def test_a_sum_in_the_product_is_no_zero() -> None:
    body = BODY.replace("f[j] * (x", "fmaf(f[j], (x").replace(": 0.0f)", ": 0.0f), s)")
    body = body.replace("f[j] * a[g]", "fmaf(f[j], a[g], s)")
    assert "both ways" in refused(unparted(kernel_of(text_of(body))))
