"""Launches of as many blocks as a size says that the kernel is not given."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.told import told
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array

from .alike import end_of

TEXT = """\
#pragma optiml launch add grid(n / 256, rows) block(256)%s
__global__ void add(const float* a, float* c, int cols) {
    int i = blockIdx.y * cols + blockIdx.x * blockDim.x + threadIdx.x;
    c[i] = a[i] + %s;
}
"""
SIZES = {"n": 512, "rows": 3, "cols": 512}


def made(args: str = "", other: str = "1", sizes: dict[str, int] = SIZES) -> str:
    return told(parse_program(TEXT % (args, other)), sizes).text


def test_it_is_told() -> None:
    after = made()
    assert "add(const float* a, float* c, int cols, int n, int rows) {" in after
    arrays = {"a": Array("f4", ("n * rows",)), "c": Array("f4", ("n * rows",), "zeros")}
    assert end_of(TEXT % ("", "1"), after, arrays, SIZES, {**SIZES, "rows": 1}) == "same"


def test_a_launch_that_lists_its_arguments_lists_them() -> None:
    assert "args(a, c, cols, n, rows)" in made(" args(a, c, cols)")


@pytest.mark.parametrize(
    ("other", "sizes"),
    [("1; int n = 3; c[i] *= n", {"rows": 0}), ("1", {"n": 2**31, "rows": -1})],
)
def test_other_names_stay(other: str, sizes: dict[str, int]) -> None:
    assert made(other=other, sizes={**SIZES, **sizes}) == TEXT % ("", other)


def test_a_kernel_that_is_launched_twice_stays() -> None:
    twice = parse_program(TEXT % ("", "1") + "#pragma optiml launch add grid(rows) block(32)\n")
    assert told(twice, SIZES) is twice
