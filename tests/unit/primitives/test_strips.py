"""Loops in strips, alone and with several items a thread, whatever their number of rounds."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.jammed import Several, jam
from optiml_magic.kernels.primitives.strips import strip_mined

from .running import same
from .shapes import applied, kernel, refused

LINE = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const float* f, float* out, int n, int t) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    %s
    out[i] = s;
}
"""
FILTER = LINE % "for (int k = 0; k < t; ++k) s += a[i + k] * f[k];"
CONVOLUTION = LINE % "for (int k = 0; k < t; ++k) s += a[i + t - 1 - k] * f[k];"
ODD = LINE % "for (int k = 0; k < t; ++k) { if (k % 3 == 1) continue; s += a[i + k] * f[k]; }"
SHAPES = {"a": ("n + t",), "f": ("t",), "out": ("n",)}
EIGHT = Several({"x": (8, 4)})
SIZES = [(1, 1), (33, 7), (64, 8), (130, 40), (257, 83)]


@pytest.mark.parametrize(("n", "t"), SIZES)
@pytest.mark.parametrize("text", [FILTER, CONVOLUTION, ODD])
def test_a_loop_in_strips_makes_the_same_rounds(text: str, n: int, t: int) -> None:
    same(text, strip_mined(kernel(text), 0, 8), SHAPES, {"n": n, "t": t})


@pytest.mark.parametrize(("n", "t"), SIZES)
@pytest.mark.parametrize("text", [FILTER, CONVOLUTION])
def test_strips_of_several_items_load_vectors(text: str, n: int, t: int) -> None:
    made = jam(applied(strip_mined(kernel(text), 0, 8)), EIGHT)
    words = applied(made).program.text
    assert "float a_row[ITEMS_X + 8];" in words
    assert "float f_row[8];" in words
    assert "part += 1) {" in words  # what strips leave over
    same(text, made, SHAPES, {"n": n, "t": t}, rounds=True)


def test_a_known_number_of_rounds_may_leave_nothing_over() -> None:
    text = LINE % "for (int k = 0; k < 16; ++k) s += a[i + k] * f[k];"
    made = applied(strip_mined(kernel(text), 0, 8))
    assert made.program.text.count("s +=") == 1
    shapes = {"a": ("n + 16",), "f": ("16",), "out": ("n",)}
    same(text, made, shapes, {"n": 40, "t": 1})


def test_what_is_the_same_for_all_items_is_left_where_no_vector_is_aligned() -> None:
    text = FILTER.replace("f[k]", "f[k + 1]")
    words = applied(jam(applied(strip_mined(kernel(text), 0, 8)), EIGHT)).program.text
    assert "f_at[k_first + k_turn + 1]" in words


@pytest.mark.parametrize(("n", "t"), [(33, 7), (64, 200), (100, 333)])
def test_parts_of_whole_strips_are_aligned(n: int, t: int) -> None:
    made = front(applied(chunk(kernel(FILTER), 0, 4, (1, 4), 16)))
    whole = jam(applied(strip_mined(made, 0, 16)), EIGHT)
    assert "float a_row[ITEMS_X + 16];" in applied(whole).program.text
    same(FILTER, whole, SHAPES, {"n": n, "t": t}, rounds=True)


@pytest.mark.parametrize(
    ("loop", "reason"),
    [
        ("for (int k = t; k > 0; --k) {@}", "the loop does not count from 0 by 1"),
        ("for (int k = 0; k < t; ++k) { if (s > 9.0f) break; @ }",
         "the loop does not count from 0 by 1"),
        ("for (int k = 0; k < t; ++k) { for (int j = 0; j < 4; ++j) { if (s > 9.0f) break; @ } }",
         "a round may be the last"),
    ],
)  # fmt: skip
def test_loops_that_may_end_before_are_left(loop: str, reason: str) -> None:
    text = LINE % loop.replace("@", "s += a[i + k];")
    assert refused(strip_mined(kernel(text), 0, 8))[0] == reason


def test_rounds_that_go_one_by_one_are_no_windows() -> None:
    reason, _ = refused(jam(kernel(FILTER), EIGHT))
    assert reason == "items are not neighbours in `a`"
