"""Neighbouring items whose loads data leave out: by vectors, where their elements are there."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.jammed import Several, jam
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, const unsigned char* c, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    int at = y * w + x;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) { out[at] = 0; return; }
    float s = 0;
    %s
    out[at] = s;
}
"""
SIZES, OTHERS = {"w": 32, "h": 13}, {"w": 12, "h": 5}
ALONG, BOTH = Several({"x": (4,)}), Several({"x": (4,), "y": (2,)})
SIDES = (
    "if (c[at] & 1) s = a[at - 1] + a[at + 1]; "
    "else if (c[at] & 2) s = a[at - w] + a[at + w]; else s = a[at + w + 1] * a[at - w - 1];"
)


def made(
    body: str, several: Several, rows: str = "h"
) -> tuple[str, Kernel | Refused, dict[str, Array]]:
    arrays = {
        "a": Array("f4", (rows, "w")), "c": Array("u1", ("h", "w")),
        "out": Array("f4", ("h", "w"), "zeros"),
    }  # fmt: skip
    text = TEXT % body
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    return text, jam(kernel_of(text, facts), several), arrays


@pytest.mark.parametrize("several", [ALONG, BOTH])
@pytest.mark.parametrize("rows", ["h", "h + 1"])
@pytest.mark.parametrize(
    ("body", "asked"),
    [
        ("if (c[at] & 1) s = a[at];", "size(a) >= size(c)"),
        (SIDES, "size(a) >= "),
    ],
)  # fmt: skip
def test_they_come_by_vectors(body: str, asked: str, rows: str, several: Several) -> None:
    text, found, arrays = made(body, several, rows)
    after = written(found)
    assert "float4*>(&a_row" in after
    assert asked in after
    assert end_of(text, after, arrays, SIZES, OTHERS) == "same"


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        ("if (c[at] & 1) s = a[at + w];", "h - 1"),  # which nobody may ask for at the end
        ("if (c[at] & 1 && y < 4) s = a[at];", "h / 2"),
        ("if (c[at] & 1) s = a[at + 2 * w];", "h / 2"),
    ],
)
def test_a_smaller_array_has_no_such_elements(body: str, rows: str) -> None:
    _, found, _ = made(body, ALONG, rows)
    assert "not every item loads its elements of `a` anew" in refused(found)


GATHER = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* a, const int* at, const float* b, float* out, int w, int h, int m) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    out[y * w + x] = b[x] * a[y * m + at[x]] + a[y * m + at[%s] % 3];
}
"""


def test_what_data_say_is_loaded_for_each_item_beside_vectors() -> None:
    text = GATHER.replace("%s", "x") + "\n"
    arrays = {
        "a": Array("f4", ("h", "m")), "at": Array("i4", ("w",), "below m"), "b": Array("f4", ("w",)),
        "out": Array("f4", ("h", "w"), "zeros"),
    }  # fmt: skip
    sizes, others = SIZES | {"m": 9}, OTHERS | {"m": 5}
    facts = Stand(Made("one", text, arrays, sizes, others)).facts(text)
    after = written(jam(kernel_of(text, facts), BOTH))
    assert "int4*>(&at_row" in after
    assert "float4*>(&out_at" in after
    assert end_of(text, after, arrays, sizes, others) == "same"


PLANE = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__device__ int within(int v, int low, int high) { return v < low ? low : v > high ? high : v; }
__global__ void k(const float* a, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0;
    for (int j = -2; j <= 2; j++)
        for (int i = -2; i <= 2; i++) {
            %s
        }
    out[y * w + x] = s;
}
"""
AT = "s += a[within(y + j, 0, h - 1) * w + within(x + i, 0, w - 1)];"
OUT_OF = "if (i * i + j * j > 4 || y + j < 0 || x + i < 0 || %s) continue; "
INSIDE = "if (y + j >= 0 && y + j < h && x + i >= 0 && x + i < w)"


def planar(body: str, several: Several, rows: str = "h") -> tuple[str, Kernel | Refused]:
    arrays = {"a": Array("f4", (rows, "w")), "out": Array("f4", ("h", "w"), "zeros")}
    text = PLANE % body
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    return text, jam(kernel_of(text, facts), several)


@pytest.mark.parametrize("several", [ALONG, BOTH, Several({"x": (8,), "y": (4,)})])
@pytest.mark.parametrize(
    "body",
    [
        f"if (i * i + j * j > 4) continue; {AT}",
        f"if (i * i + j * j <= 5) {{ {AT} }}",
        f"if (i != 0 && j != 0) continue; {AT}",
        f"if (i == j) {{ {AT} }}",
        f"if ((i + j) & 1) continue; {AT}",
        f"if (j < 1) continue; {AT}",
        f"if (i * i + j * j > 4) continue; {INSIDE} s += a[(y + j) * w + x + i];",
        "if (i * j > 1) continue; s += a[min(max(y + j, 0), h - 1) * w + min(max(x + i, 0), w - 1)];",
    ],
)  # fmt: skip
def test_discs_and_crosses_come_by_vectors(body: str, several: Several) -> None:
    text, found = planar(body, several)
    after = written(found)
    assert "float4*>(&a_row" in after
    arrays = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}
    assert end_of(text, after, arrays, SIZES, OTHERS) == "same"
    assert end_of(text, after, arrays, {"w": 9, "h": 3}, {"w": 4, "h": 1}) == "same"


def test_places_in_a_plane_go_as_far_as_a_loop_that_stays_takes_them() -> None:
    near = "a[(y + j) * w + x + i]"
    within = INSIDE.removeprefix("if (").removesuffix(")")
    text = PLANE % f"if ({within} && {near} < s) {{ s = {near}; at = j * 11 + i; }}"
    for old, new in ("-2", "-r"), ("<= 2", "<= r"), ("float s = 0;", "float s = 9; int at = 0;"):
        text = text.replace(old, new)
    text = text.replace("float* out, int w, int h", "float* out, int w, int h, int r")
    text = text.replace("= s;", "= s + at;")
    arrays = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}
    sizes, others = {**SIZES, "r": 5}, {**OTHERS, "r": 5}
    facts = Stand(Made("one", text, arrays, sizes, others)).facts(text)
    after = written(jam(kernel_of(text, facts), Several({"x": (4,), "y": (4,)}, {"r": 5})))
    assert "for (int j = -5" in after.partition("const bool inside")[2]
    assert end_of(text, after, arrays, sizes, others) == "same"


@pytest.mark.parametrize(
    "body",
    [
        OUT_OF % "y + j >= h / 2 || x + i >= w" + "s += a[(y + j) * w + x + i];",
        OUT_OF % "y + j >= h || x + i >= w - 1" + "s += a[(y + j) * (w - 1) + x + i];",
    ],
)
def test_a_smaller_plane_is_left_to_the_other_side(body: str) -> None:
    arrays = {"a": Array("f4", ("h / 2 * w + 2",) if "h / 2" in body else ("h", "w - 1")),
              "out": Array("f4", ("h", "w"), "zeros")}  # fmt: skip
    text = PLANE % body
    facts = Stand(Made("one", text, arrays, SIZES, OTHERS)).facts(text)
    found = jam(kernel_of(text, facts), ALONG)
    if not isinstance(found, Refused):
        assert end_of(text, written(found), arrays, SIZES, OTHERS) == "same"
