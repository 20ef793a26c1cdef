"""Rows whose length is a number: steps of a stride that has no name."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.jammed import Several, jam
from optiml_magic.kernels.primitives.rows_of_numbers import far, stride, taken_apart

from .running import same
from .shapes import applied, kernel, refused

PLANE = """\
#define N %d
#pragma optiml launch k grid(cdiv(N, 8), cdiv(40, 4)) block(8, 4)
__global__ void k(const float* a, float* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x > 0 && x < N - 1 && y > 0 && y < 39) %s
}
"""
CROSS = "out[y * N + x] = a[(y - 1) * N + x] + a[(y + 1) * N + x] + a[y * N + x - 1] + a[y * N + x + 1];"
ROOM = """\
#define NX 48
#define NY 36
#define NZ 200
#pragma optiml launch k grid(3, 9) block(16, 4)
__global__ void k(const float* a, float* out) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= NX - 1 || y >= NY - 1) return;
    for (%s z = 1; z < NZ - 1; ++z)
        out[(z * NY + y) * NX + x] = a[(z * NY + y) * NX + x + 1] + a[((z - 1) * NY + y) * NX + x]
            + a[((z + 1) * NY + y) * NX + x] + a[(z * NY + y + 1) * NX + x];
}
"""


@pytest.mark.parametrize("items", [{"x": (4,)}, {"x": (4,), "y": (2,)}, {"y": (4,)}])
def test_neighbours_above_and_below_are_rows_of_a_window(items: dict[str, tuple[int, ...]]) -> None:
    text = PLANE % (64, CROSS)
    made = jam(kernel(text), Several(items))
    rows = "ITEMS_Y + 2" if "y" in items else "3"
    declared = f"float a_row[{rows}][ITEMS_X + 8];"
    assert (declared in applied(made).program.text) == ("x" in items)
    same(text, made, {"a": ("40", "64"), "out": ("40", "64")}, {})


def test_planes_and_rows_of_numbers_are_two_strides() -> None:
    for counter in ("int", "size_t"):
        text = ROOM % counter
        made = jam(kernel(text), Several({"x": (4,), "y": (2,)}))
        assert "float a_row[3][ITEMS_Y + 1][ITEMS_X + 4];" in applied(made).program.text
        same(text, made, {"a": ("200", "36", "48"), "out": ("200", "36", "48")}, {})


def test_rounds_over_planes_are_counted_in_64_bits_where_the_kernel_does() -> None:
    text = applied(jam(kernel(ROOM % "size_t"), Several({"x": (4,)}))).program.text
    assert "z * 1728ll" in text
    assert "z * 1728ll" not in applied(jam(kernel(ROOM % "int"), Several({"x": (4,)}))).program.text


def test_rows_that_are_no_whole_vectors_are_refused() -> None:
    found = jam(kernel(PLANE % (63, CROSS)), Several({"x": (4,)}))
    assert "not whole vectors" in refused(found)[0]


def test_pixels_side_by_side_are_no_rows() -> None:
    body = "{ for (int c = 0; c < 3; ++c) out[(y * N + x) * 3 + c] = 2 * a[(y * N + x) * 3 + c]; }"
    text = PLANE % (64, body)
    made = jam(kernel(text), Several({"x": (4,), "y": (2,)}))
    assert "out_row[ITEMS_Y][ITEMS_X * 3];" in applied(made).program.text
    same(text, made, {"a": ("40", "64", "3"), "out": ("40", "64", "3")}, {})


LINE = """\
#pragma optiml launch k grid(cdiv(2560, 32)) block(32)
__global__ void k(const float* a, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= 64 && i < 2560 - 64) out[i] = a[i - 64] + a[i + 64] + a[i - 1] + a[i + 1] - a[i + %d];
}
"""


@pytest.mark.parametrize("last", [0, 63])
def test_what_is_far_away_on_a_line_is_in_another_row(last: int) -> None:
    text = LINE % last
    made = jam(kernel(text), Several({"x": (4,)}))
    assert "float a_row[3][ITEMS_X + 8];" in applied(made).program.text
    same(text, made, {"a": ("2560",), "out": ("2560",)}, {})


@pytest.mark.parametrize(
    ("numbers", "found"),
    [
        ((), set()),
        ((0, 1, -1, 5), set()),
        (range(-80, 80), set()),
        ((0, -4096, 4096), {4096}),
        ((-4097, -4096, -4095, -1, 1, 4095, 4097), {4096}),
        ((0, 512, -1024, 1536), {512}),
        ((0, 64, 64 * 64, -64 * 64), {64, 64 * 64}),
    ],
)
def test_numbers_that_lie_apart_are_rows_and_planes(numbers: range, found: set[int]) -> None:
    assert far(numbers) == found


def test_a_step_is_the_nearest_row_and_what_is_left_along_it() -> None:
    moved = Polynomial.of({("@+y",): 4096, (): 4095})
    assert taken_apart({(): moved}, {(): [4096]}) == {
        ("4096",): Polynomial.of({("@+y",): 1, (): 1}), (): Polynomial.constant(-1),
    }  # fmt: skip
    assert taken_apart({(): moved, ("n",): moved}, {("n",): [8192, 4096]}) == {
        (): moved,
        ("4096", "n"): Polynomial.of({("@+y",): 1, (): 1}), ("n",): Polynomial.constant(-1),
    }  # fmt: skip
    assert stride(("4096", "n")) == Polynomial.of({("n",): 4096})
