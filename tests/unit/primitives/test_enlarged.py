"""Items of a thread that are whole rows of a quotient, as of an image enlarged by a number."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.jammed import Several, jam, shared

from .running import same_of_many as same
from .shapes import applied, kernel, refused

TEXT = """\
#pragma optiml launch k grid(cdiv(w * s, 8), cdiv(h * s, 4)) block(8, 4)
__global__ void k(const float* a, const float* f, float* out, int w, int h, int s) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w * s || y >= h * s) return;
    float t = 0.0f;
    %s
    out[y * w * s + x] = t;
}
"""
DOWN = """\
for (int k = 0; k < 3; ++k) {
        int j = min(max(y / s + k - 1, 0), h - 1);
        t += a[(j * s) * w + x] * f[y % s * 3 + k];
    }"""
ACROSS = "for (int k = 0; k < 3; ++k) t += a[y * w + min(max(x / s + k - 1, 0), w - 1)] * f[k];"
SHAPES = {"a": ("h * s", "w * s"), "f": ("3 * s",), "out": ("h * s", "w * s")}
ALONG = [{"y": (4, 2)}, {"x": (4,)}, {"y": (4, 2), "x": (4,)}, {"y": (6,)}, {"x": (8, 4)}]


@pytest.mark.parametrize("several", ALONG)
@pytest.mark.parametrize("body", [DOWN, ACROSS])
@pytest.mark.parametrize("s", [2, 3])
def test_each_row_of_them_has_its_quotient(
    body: str, several: dict[str, tuple[int, ...]], s: int
) -> None:
    made = jam(kernel(TEXT % body), Several(several, {"s": 2}))
    words = applied(made).program.text
    assert "inside = " in words
    assert "s == 2" in words
    assert "2 % ITEMS" not in words
    same(TEXT % body, made, SHAPES, {"w": 20, "h": 9, "s": s})


def test_quotients_are_steps_and_rests_are_those_of_items() -> None:
    made = jam(kernel(TEXT % DOWN), Several({"y": (4, 2), "x": (4,)}, {"s": 2}))
    words = applied(made).program.text
    assert "a_row[k * 2 + (y_item / 2) * 2][x_item] * f_at[k + (y_item % 2) * 3]" in words
    assert "alignas(16) float a_row[ITEMS_Y / 2 * 2 + 3][ITEMS_X];" in words
    assert "0 < (y_first / 2) && (y_first / 2) + (ITEMS_Y / 2) < h;" in words
    made = jam(kernel(TEXT % ACROSS), Several({"x": (4,)}, {"s": 2}))
    assert "a_at[k + (x_item / 2) - 1]" in applied(made).program.text
    same(TEXT % ACROSS, made, SHAPES, {"w": 24, "h": 7, "s": 2})


def test_vectors_of_rows_are_stored_where_a_compiler_sees_that_it_may() -> None:
    made = jam(kernel(TEXT % DOWN), Several({"y": (4, 2), "x": (4,)}, {"s": 2}))
    assert "&out_at[y_item * 2 * (long long)w + part]" in applied(made).program.text


def test_items_that_are_no_whole_rows_are_decided_nowhere() -> None:
    made = jam(kernel(TEXT % DOWN), Several({"y": (4,)}, {"s": 3}))
    assert "a[(j * s) * w + x] * f[y % s * 3 + k]" in applied(made).program.text
    same(TEXT % DOWN, made, SHAPES, {"w": 11, "h": 6, "s": 3})


def test_what_items_of_an_enlarged_image_share_is_saved() -> None:
    saved = shared(kernel(TEXT % DOWN), Several({"y": (4,)}, {"s": 2})).saved["y"]
    # Of 4 items times 3 of both arrays there are 4 rows of one and 6 weights of the other.
    assert saved.share == pytest.approx(1 - 10 / 24)
    assert saved.more == pytest.approx({"a": 1 / 3, "f": 1.0})


@pytest.mark.parametrize("test", ["0 >= h * s", "h <= 0 || x >= w * s", "h * s < 1"])
def test_tests_of_sizes_alone_are_made_once(test: str) -> None:
    text = TEXT.replace("    float t", f"    if ({test}) return;\n    float t") % DOWN
    made = jam(kernel(text), Several({"y": (4, 2)}, {"s": 2}))
    same(text, made, SHAPES, {"w": 13, "h": 9, "s": 2})


@pytest.mark.parametrize("test", ["f[0] > 2", "s == 0"])
def test_tests_of_more_than_borders_are_not_known(test: str) -> None:
    text = TEXT.replace("    float t", f"    if ({test}) return;\n    float t") % DOWN
    made = jam(kernel(text), Several({"y": (4, 2)}, {"s": 2}))
    assert refused(made)[0] == "whether an item ends before the others is not known"


def test_tests_of_rests_are_each_item_s_own() -> None:
    text = TEXT % "if (y % 2 == 0) t = a[y / 2 * w + x];\n    else t = a[y * w + x];"
    made = jam(kernel(text), Several({"y": (4, 2)}))
    assert "y_first % 2" not in applied(made).program.text
    same(text, made, SHAPES, {"w": 20, "h": 9, "s": 1})
