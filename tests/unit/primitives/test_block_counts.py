"""Numbers of blocks in many spellings, and how many items they are meant for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.block_counts import covered, rounded_up
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.grids import needed
from optiml_magic.source.expressions import Expression, Name, Node, Number, parse_expression
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, written

WIDTH = 8
EXACT = [
    "cdiv(n, 8)", "(n + 7) / 8", "(n + 8 - 1) / 8", "(7 + n) / 8", "(n - 1) / 8 + 1", "1 + (n - 1) / 8",
    "n / 8 + (n % 8 != 0)", "n / 8 + (n % 8 > 0)", "n / 8 + (n % 8 ? 1 : 0)", "(n % 8 == 0 ? 0 : 1) + n / 8",
    "n % 8 == 0 ? n / 8 : n / 8 + 1", "n % 8 ? n / 8 + 1 : n / 8", "(n + 7) >> 3", "(n + (B - 1)) / B",
    "cdiv(n, B)", "(n + B - 1) / B", "(n * m + 7) / 8", "(n - m + 7) / 8",
]  # fmt: skip
MORE = [
    "n / 8 + 1",
    "1 + n / 8",
    "(n + 8) / 8",
    "(n + 15) / 8",
    "max(1, (n + 7) / 8)",
    "cdiv(n, 8) + 1",
    "(n >> 3) + 1",
    "max((n + 7) / 8, 4)",
    "n / B + 1",
]
TIMES = ["cdiv(n, 32) * 4", "2 * ((n + 15) / 16)", "(n / 64 + 1) * 8", "cdiv(n, 16) * 2 * 1"]  # fmt: skip
NEITHER = ["n / 8", "min(cdiv(n, 8), 4)", "n", "(n + 7) / 16", "n / 8 * 2", "n % 8 ? n / 8 : n / 8 + 1",
           "n / 8 + (m % 8 != 0)", "n / 8 + n % 8", "(n + 6) / 8", "32",
           "cdiv(n, 8) * 4", "cdiv(n, 64) * 4", "cdiv(n, 32) * m"]  # fmt: skip


def said(words: str) -> tuple[Node, Node]:
    return parse_expression(words).tree, Name("B") if "B" in words else Number(WIDTH)


def value(node: Node, n: int, m: int) -> int:
    return Expression(node, "").evaluate({"n": n, "m": m, "B": WIDTH})


@given(st.sampled_from(TIMES), st.integers(1, 300))
def test_blocks_of_several_parts_are_for_what_these_are_for(words: str, n: int) -> None:
    node, old = said(words)
    found = [value(each, n, 0) for each in covered(node, old, WIDTH)]
    assert n in found
    assert all(value(node, n, 0) * WIDTH >= each for each in found)
    assert rounded_up(node, old, WIDTH) is None


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(EXACT + MORE), st.integers(1, 200), st.integers(0, 40))
def test_there_are_threads_for_all_that_is_covered(words: str, n: int, m: int) -> None:
    node, old = said(words)
    m = min(m, n)
    found = [*covered(node, old, WIDTH)]
    assert found
    assert all(value(node, n, m) * WIDTH >= value(each, n, m) for each in found)
    whole = rounded_up(node, old, WIDTH)
    assert whole is not None or "max" in words
    if whole is not None:
        assert value(node, n, m) == max(0, -(-value(whole, n, m) // WIDTH))


@pytest.mark.parametrize("words", EXACT)
def test_what_is_rounded_up_is_said_as_it_is_written(words: str) -> None:
    node, old = said(words)
    whole = rounded_up(node, old, WIDTH)
    assert whole is not None
    assert str(Expression(whole, "")) in ("n", "n * m", "n - m")


@pytest.mark.parametrize("words", NEITHER)
def test_others_cover_nothing_for_certain(words: str) -> None:
    node, old = said(words)
    assert not [*covered(node, old, WIDTH)] or "n" not in words


TEXT = """\
#pragma optiml launch k grid({0}) block(32)
__global__ void k(const float* x, float* out, int n) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    {1}out[i] = x[i] * 2;
}}
"""
ARRAYS = {"x": Array("f4", ("(n + 63) / 32 * 32",)), "out": Array("f4", ("(n + 63) / 32 * 32",))}


@pytest.mark.parametrize("grid", ["n / 32 + 1", "1 + (n - 1) / 32", "max(1, (n + 31) >> 5)"])
def test_a_guard_says_how_many_of_them_work(grid: str) -> None:
    assert str(needed(kernel_of(TEXT.format(grid, "if (i < n) ")), "x")) == "n"


def test_a_number_of_blocks_is_for_what_the_guard_says() -> None:
    assert str(needed(kernel_of(TEXT.format("4", "if (i < 100) ")), "x")) == "100"
    assert str(needed(kernel_of(TEXT.format("4 * 64 / 64", "if (i < 100) ")), "x")) == "100"
    assert needed(kernel_of(TEXT.format("5", "if (i < 100) ")), "x") is None
    assert needed(kernel_of(TEXT.format("4", "")), "x") is None


@pytest.mark.parametrize(
    ("grid", "guard"),
    [("cdiv(n, 32)", ">= (n + 31) / 32 * 32"), ("n / 32 + 1", ">= (n + 1 + 31) / 32 * 32"), ("2", ">= 64")],
)  # fmt: skip
def test_without_a_guard_all_of_them_do(grid: str, guard: str) -> None:
    text = TEXT.format(grid, "")
    after = written(bounded(kernel_of(text)))
    assert guard in after
    sizes = ({"n": 33}, {"n": 60}) if grid == "2" else ({"n": 70}, {"n": 3})
    assert end_of(text, after, ARRAYS, *sizes) == "same"


def test_who_asks_how_many_blocks_there_are_is_left_alone() -> None:
    steps = "for (; i < n; i += gridDim.x * blockDim.x) "
    assert not isinstance(bounded(kernel_of(TEXT.format("2", steps))), Kernel)
