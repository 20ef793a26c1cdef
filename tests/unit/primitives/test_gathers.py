"""Rows that memory says, walked along by neighbours: their elements come as vectors."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Refused, where_legal
from optiml_magic.kernels.primitives.enclosed import enclosed_by_memory
from optiml_magic.kernels.primitives.jammed import Several, jam, shared
from tests.present import sampled
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .shapes import applied, kernel, refused

ROWS = """\
#pragma optiml launch k grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void k(const float* t, const int* at, const int* from, float* out, int w, int h) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float s = 0.0f;
    %s
    out[y * w + x] = s;
}
"""
FOUR = Several({"x": (4, 8)})
ARRAYS = {
    "t": Array("f4", ("h", "w")),
    "at": Array("i4", ("h", "3"), "below h"),
    "from": Array("i4", ("h",), "below h"),
    "out": Array("f4", ("h", "w"), "zeros"),
}


@pytest.mark.parametrize(
    "body",
    sampled(
        [
            "for (int k = 0; k < 3; ++k) s += t[at[y * 3 + k] * w + x];",
            "for (int k = from[y]; k < h; k++) s += t[at[k * 3] * w + x];",
            "const float* row = t + at[y * 3] * w; s = row[x] * 2.0f;",
            "for (int k = 0; k < h; ++k) { int r = at[at[k * 3] * 3]; s += t[r * w + x] * from[k]; }",
        ],
        2,
    ),
)
def test_rows_come_as_vectors(body: str) -> None:
    text = ROWS % body
    made = jam(kernel(text), FOUR)
    words = applied(made).program.text
    assert "t_row_at = &t[(size_t)" in words
    program = applied(made).program.with_values({"ITEMS_X": 8})
    stand = Stand(Made("one", text, ARRAYS, {"w": 32, "h": 19}, {"w": 30, "h": 5}, exact=True))
    found = stand.applied(Offer("one", "", program.text, False), text)
    assert found.sound, f"{found.end}: {found.detail}\n{found.after}"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("for (int k = 0; k < 3; ++k) s += t[at[k] + x];", "begin anywhere"),
        ("for (int k = 0; k < 3; ++k) s += t[at[x] * w + x];", "is not read"),
        ("for (int k = 0; k < h; ++k) { s += out[at[k] * w + x]; }", "loads its elements"),
        ("for (int k = 0; k < h; ++k) if (t[x] >= 0.0f) s -= t[at[k] * w + x];", "anew"),
        ("for (int k = 0; k < h; ++k) if (s >= 0.0f) s -= t[at[k] * w + x];", "anew"),
        ("for (int k = 0; k < h; ++k) if (out[k] >= 0.0f) s -= t[at[k] * w + x];", "anew"),
    ],
)
def test_refused(body: str, reason: str) -> None:
    assert reason in refused(jam(kernel(ROWS % body), FOUR))[0]


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < 3; ++k) { int r = at[y * 3 + k]; if (r < 3) continue; s += t[r * w + x]; }",
        "for (int k = 0; k < 3; ++k) if (t[k] > 0.0f && from[y] > 2) s += t[at[k] * w + x] * t[x];",
        "if (from[y] > 4) { for (int k = 0; k < 3; ++k) s += t[at[k] * w + x]; }",
        "if (from[y] > 4) s = t[from[y] * w + x]; for (int k = 0; k < 3; ++k) s += t[k * w + x];",
    ],
)  # fmt: skip
def test_what_memory_tells_all_items_stands_around_their_loads(body: str) -> None:
    text = ROWS % body
    made = jam(where_legal(enclosed_by_memory, kernel(text)), FOUR)
    words = applied(made).program.text
    inside = words[
        words.index("if (inside) {") : words.index("if (edges) {", words.index("if (inside)"))
    ]
    assert "if (" in inside.removeprefix("if (inside) {")
    assert "t_row" in inside.split("if (", 2)[2]
    program = applied(made).program.with_values({"ITEMS_X": 8})
    stand = Stand(Made("one", text, ARRAYS, {"w": 32, "h": 19}, {"w": 30, "h": 5}, exact=True))
    found = stand.applied(Offer("one", "", program.text, False), text)
    assert found.sound, f"{found.end}: {found.detail}\n{found.after}"


def test_rows_are_others_along_other_axes() -> None:
    text = ROWS % "for (int k = 0; k < 3; ++k) s += t[at[y * 3 + k] * w + x];"
    assert shared(kernel(text), FOUR).alone
    assert isinstance(jam(kernel(text), Several({"x": (4,), "y": (2,)})), Refused)
