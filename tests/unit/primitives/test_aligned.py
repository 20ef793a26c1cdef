"""Blocks that are tiles of a plane, whose threads and blocks lie along its axes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.aligned import aligned
from optiml_magic.model.facts import LaunchFacts
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(h, 8), cdiv(w, 32)) block(256)
__global__ void k(const float* a, float* o, int h, int w) {
    LETS
    int y = blockIdx.x * 8 + ROW;
    int x = blockIdx.y * 32 + COLUMN;
    if (y < h && x < w) o[y * w + x] = 2.0f * a[y * w + x] + blockDim.x;
}
"""
ARRAYS = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}


def text_of(row: str = "threadIdx.x / 32", column: str = "threadIdx.x % 32", lets: str = "") -> str:
    return TEXT.replace("ROW", row).replace("COLUMN", column).replace("LETS", lets)


def same(before: str, after: str) -> None:
    assert end_of(before, after, ARRAYS, {"h": 37, "w": 71}, {"h": 5, "w": 9}) == "same"


@pytest.mark.parametrize(
    ("row", "column", "lets"),
    [
        ("threadIdx.x / 32", "threadIdx.x % 32", ""),
        ("(t >> 5)", "(t & 31)", "int t = threadIdx.x;"),
        ("t / T", "t % T", "const unsigned t = threadIdx.x, T = 32;"),
        ("threadIdx.x / T", "(threadIdx.x & (T - 1))", "constexpr int T = 32;"),
    ],
)
def test_a_line_that_is_a_tile_lies_along_both_axes(row: str, column: str, lets: str) -> None:
    before = text_of(row, column, lets)
    after = written(aligned(kernel_of(before)))
    assert "grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)" in after
    assert "y = blockIdx.y * 8 + threadIdx.y" in after
    assert "x = blockIdx.x * 32 + threadIdx.x" in after
    same(before, after)


def test_a_number_of_the_module_says_how_wide_it_is() -> None:
    before = text_of("threadIdx.x / WIDE", "threadIdx.x % WIDE")
    before = before.replace("#pragma", "constexpr int WIDE = 32;\n#pragma")
    after = written(aligned(kernel_of(before)))
    assert "block(32, 8)" in after
    same(before, after)


def test_lanes_may_lie_along_rows() -> None:
    before = text_of("threadIdx.x % 8", "threadIdx.x / 8")
    after = written(aligned(kernel_of(before)))
    assert "block(8, 32)" in after
    assert "grid(cdiv(h, 8), cdiv(w, 32))" in after
    same(before, after)


def test_blocks_of_two_axes_are_turned() -> None:
    before = text_of("threadIdx.y", "threadIdx.x").replace("block(256)", "block(32, 8)")
    after = written(aligned(kernel_of(before)))
    assert "grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)" in after
    same(before, after)


ROWS = """\
#pragma optiml launch k grid(GRID) block(BLOCK)
__global__ void k(const float* a, float* o, int n, int c, int w) {
    LETS
    if (at < w) o[(one * c + row) * w + at] = 2.0f * a[(one * c + row) * w + at] + row;
}
"""
SLABS = {"a": Array("f4", ("n", "c", "w")), "o": Array("f4", ("n", "c", "w"), "zeros")}


@pytest.mark.parametrize(
    ("grid", "block", "lets", "turned"),
    [
        ("n, cdiv(w, 64), c", "64",
         "int one = blockIdx.x, row = blockIdx.z, at = blockIdx.y * blockDim.x + threadIdx.x;",
         "cdiv(w, 64), n, c"),
        ("n, c, cdiv(w, 64)", "64",
         "int one = blockIdx.x, row = blockIdx.y, at = blockIdx.z * 64 + threadIdx.x;",
         "cdiv(w, 64), c, n"),
        ("n, cdiv(c, 4), cdiv(w, 16)", "16, 4",
         ("int one = blockIdx.x, row = blockIdx.y * 4 + threadIdx.y;"
         "int at = blockIdx.z * 16 + threadIdx.x; if (row >= c) return;"),
         "cdiv(w, 16), cdiv(c, 4), n"),
        ("n, cdiv(w, 16), cdiv(c, 4)", "16, 4",
         ("int one = blockIdx.x, row = blockIdx.z * 4 + threadIdx.y;"
         "int at = blockIdx.y * 16 + threadIdx.x; if (row >= c) return;"),
         "cdiv(w, 16), cdiv(c, 4), n"),
    ],
)  # fmt: skip
def test_blocks_of_three_axes_go_along_those_of_their_threads(
    grid: str, block: str, lets: str, turned: str
) -> None:
    before = ROWS.replace("GRID", grid).replace("BLOCK", block).replace("LETS", lets)
    after = written(aligned(kernel_of(before)))
    assert f"grid({turned}) block({block})" in after
    sizes = {"n": 3, "c": 7, "w": 150}, {"n": 2, "c": 1, "w": 5}
    assert end_of(before, after, SLABS, *sizes) == "same"


def test_blocks_that_lie_along_their_threads_stay_whatever_else_they_are() -> None:
    lets = "int one = blockIdx.y, row = blockIdx.z, at = blockIdx.x * 64 + threadIdx.x;"
    text = ROWS.replace("GRID", "cdiv(w, 64), n, c").replace("BLOCK", "64").replace("LETS", lets)
    assert "lie along the axes" in refused(aligned(kernel_of(text)))
    apart = text.replace("blockIdx.x * 64 + threadIdx.x", "threadIdx.x / 8 * 512 + blockIdx.y")
    assert refused(aligned(kernel_of(apart)))


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (text_of("threadIdx.y", "threadIdx.x").replace("block(256)", "block(32, 4)"), "no axis"),
        (text_of("threadIdx.x / 32", "threadIdx.x % 16"), "no axis"),
        (text_of("threadIdx.x / 16", "threadIdx.x % 16"), "no axis"),
        (text_of("threadIdx.x / T", "threadIdx.x % T", "int T = 32; if (w > 9) T = 16;"), ""),
        (text_of("threadIdx.x / T", "threadIdx.x % T", "int T = 32; int* p = &T; *p = 16;"), ""),
        (text_of("threadIdx.x / T", "threadIdx.x % T", "const int T = (char)288;"), ""),
        (text_of("threadIdx.x / T", "threadIdx.x % T", "const char T = 288;"), ""),
        (text_of("threadIdx.x / T", "threadIdx.x % T", "const float T = 32;"), ""),
        (text_of("0", "threadIdx.x"), ""),
        (text_of(lets="__syncthreads();"), "wait"),
        (text_of(lets="__shared__ float s[256]; s[threadIdx.x] = a[0];"), "wait"),
        (text_of(lets="float v = __shfl_sync(~0u, a[0], 3);"), "no axis"),
        (text_of().replace("block(256)", "block(w)"), ""),
        (
            text_of("threadIdx.y", "threadIdx.x")
            .replace("block(256)", "block(32, 8)")
            .replace("blockIdx.x * 8", "blockIdx.y * 8")
            .replace("blockIdx.y * 32", "blockIdx.x * 32"),
            "lie along the axes",
        ),
    ],
)  # fmt: skip
def test_what_is_no_tile_stays(before: str, reason: str) -> None:
    assert reason in refused(aligned(kernel_of(before)))


@pytest.mark.parametrize(
    "word",
    ["constexpr char T = 288", "const bool T = 32", "__constant__ int T = 32",
     "__device__ int T = 32", "const float T = 32", "static const volatile int T = 32",
     "namespace a { constexpr int T = 16; } constexpr int T = 32"],
)  # fmt: skip
def test_a_name_of_the_module_that_may_be_another_number_says_nothing(word: str) -> None:
    before = text_of("threadIdx.x / T", "threadIdx.x % T")
    assert refused(aligned(kernel_of(before.replace("#pragma", f"{word};\n#pragma"))))


def test_a_parameter_of_a_template_hides_a_number_of_the_module() -> None:
    before = text_of("threadIdx.x / T", "threadIdx.x % T")
    before = before.replace(
        "#pragma optiml launch k", "constexpr int T = 32;\n#pragma optiml launch k<16>"
    )
    before = before.replace("__global__", "template <int T>\n__global__")
    assert refused(aligned(kernel_of(before)))


def test_blocks_that_are_too_many_for_the_other_axis_stay() -> None:
    facts = LaunchFacts("k", 1, (70000, 3, 1), (256, 1, 1), {}, {"h": 560000, "w": 96})
    kernel = replace(kernel_of(text_of()), facts=facts)
    assert "so many blocks" in refused(aligned(kernel))
