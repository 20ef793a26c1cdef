"""Tests that have names, put where branches ask for them."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.unnamed_tests import unnamed_tests
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 16), cdiv(m, 16)) block(16, 16)
__global__ void k(const float* a, float* out, int m, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    int i = blockIdx.y * blockDim.y + threadIdx.y;
    BODY
}
"""
STORE = "out[i * n + j] = a[i * n + j] + 1;"
ARRAYS = {"a": Array("f4", ("m", "n")), "out": Array("f4", ("m", "n"), "zeros")}


@pytest.mark.parametrize(
    ("body", "test"),
    [
        (f"bool inside = i < m && j < n; if (inside) {STORE}", "if (i < m && j < n)"),
        (f"const bool out_ = i >= m || j >= n; if (out_) return; {STORE}", "if (i >= m || j >= n)"),
        (f"int in = i < m, to = j < n; if (in && to) {STORE}", "if (i < m && j < n)"),
        (f"auto inside = i < m && j < n; if (!inside) return; {STORE}", "if (!(i < m && j < n))"),
        (
            f"const bool odd = i % 2 != 0 && !(j == 3); if (i < m && j < n) {{ if (odd) {STORE} }}",
            "if (i % 2 != 0 && !(j == 3))",
        ),
        (
            f"int w = n - 1; bool a_ = i < m, b_ = j <= w; if (a_) if (b_) {{ {STORE} }}",
            "if (j <= w)",
        ),
    ],
)  # fmt: skip
def test_a_test_stands_where_a_branch_asks(body: str, test: str) -> None:
    before = TEXT.replace("BODY", body)
    found = unnamed_tests(kernel_of(before))
    assert isinstance(found, Kernel), found
    after = written(found)
    assert test in after
    assert end_of(before, after, ARRAYS, {"m": 17, "n": 33}, {"m": 3, "n": 5}) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"bool inside = i < m && j < n; inside = inside && i > 0; if (inside) {STORE}",
        f"bool in = i < m && j < n; if (in) {{ {STORE} out[i * n + j] += in; }}",  # asked for else
        f"bool in = i < m && j < n; for (int r = 0; in && r < 2; ++r) {STORE}",
        f"bool in = i < m && j < n && a[0] < 2; if (in) {STORE}",  # memory may change between
        f"i += 1; bool in = i < m && j < n; i -= 1; if (in) {STORE}",
        f"bool in = i < m && j < n; i = 0; if (in) {STORE}",
        f"int in = (i < m) * (j < n); if (in) {STORE}",
        f"int c = 0; bool in = ++c < m && i < m && j < n; if (in) {STORE}",
        f"bool in = i < m && j < n; __syncthreads(); if (in) {STORE}",
        f"bool in = i < m && j < n; auto f = [&] {{ return in; }}; if (in && f()) {STORE}",
    ],
)
def test_what_stays_as_it_is(body: str) -> None:
    assert refused(unnamed_tests(kernel_of(TEXT.replace("BODY", body)))).startswith(
        ("no local holds a test", "its threads wait")
    )


@pytest.mark.parametrize(
    "body",
    [
        f"if (const bool in = i < m && j < n) {STORE}",
        "const bool in = i < m && j < n; { int m = i * n + j; if (in) out[m] = 2; }",
    ],
)
def test_what_has_no_place_of_its_own_stays(body: str) -> None:
    found = refused(unnamed_tests(kernel_of(TEXT.replace("BODY", body))))
    assert found.startswith("no local holds a test")


def test_names_that_are_hidden_stay() -> None:
    body = f"bool in = i < m && j < n; {{ int j = 0, m = 0; if (in && j == m) i += j; }} if (i < m && j < n) {STORE}"
    assert refused(unnamed_tests(kernel_of(TEXT.replace("BODY", body)))).startswith("no local")


@pytest.mark.parametrize(
    "body",
    [
        f"const bool first = level == 0; level = 1; if (first && i < m && j < n) {STORE}",
        f"const bool in = i < m && j < SIDE; int SIDE = 2; if (in && j < n) {{ {STORE} i = SIDE; }}",
    ],
)
def test_a_name_of_the_file_that_means_another_value_later_stays(body: str) -> None:
    file = "__device__ int level;\nconst int SIDE = 9;\n"
    found = refused(unnamed_tests(kernel_of(file + TEXT.replace("BODY", body))))
    assert found.startswith("no local holds a test")
