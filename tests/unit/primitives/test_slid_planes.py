"""Windows that slide in two directions: rows of a warp share what lies in their columns."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import is_simple
from optiml_magic.kernels.primitives.slid_planes import slid_planes

from .running import same, same_of_many
from .shapes import applied, kernel, refused

GUARD = "if (x >= w || y >= h) return;"
DOWN, ACROSS = "for (int e = -r; e <= r; e++)", "for (int d = -r; d <= r; d++)"
ROUND = "int q = y + e, p = x + d; if (q >= 0 && q < h && p >= 0 && p < w) s += a[q * w + p];"
TEXT = f"""\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* a, float* out, int w, int h, int r) {{
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    {GUARD}
    float s = 0.0f;
    {DOWN}
        {ACROSS} {{ {ROUND} }}
    out[y * w + x] = s;
}}
"""
SHAPES = {"a": ("h", "w"), "out": ("h", "w")}
TUNED = {"ITEMS": 5, "ROWS": 2, "TALL": 3}


def slid(text: str, at: int = 1, other: int = 0) -> Kernel | Refused:
    made = applied(as_counted(kernel(text), at, is_simple))
    return slid_planes(applied(as_counted(made, other, is_simple)), at, other)


def test_a_warp_takes_several_rows() -> None:
    after = applied(slid(TEXT)).program.text
    for now in (
        "grid(cdiv(w, 32 * ITEMS), cdiv(h, ROWS * TALL)) block(32, ROWS)",
        "shared((32 * ITEMS + max(r * 2 + 1, 1) - 1) * 4 * ROWS * TALL)",
        "const int own_rows = min(h - first_row, TALL);\n    if (own_rows <= 0) return;\n",
        "float* s_tiles = reinterpret_cast<float*>(window_bytes) + threadIdx.y * TALL * span;",
    ):
        assert now in after
    assert "y >= h" not in after


@pytest.mark.parametrize(
    "sizes",
    [{"w": 190, "h": 14, "r": 4}, {"w": 33, "h": 5, "r": 1}, {"w": 9, "h": 2, "r": 9}],
)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        (f"{DOWN}\n        {ACROSS}", f"{ACROSS}\n        {DOWN}"),
        ("int e = -r; e <= r; e++", "int e = 0; e < r; e++"),
        ("y + e, p = x + d", "y - e, p = x - d"),
        ("y + e, p = x + d", "y + r - e, p = x + d"),
        ("s += a", "s = fmaxf(s, a"),
        ("float s = 0.0f", "float s = a[y * w + x]"),
        (GUARD, "if (y >= h) return; int row = y * w; if (x >= w || r > 99) return;"),
        (GUARD, "if (y >= h || r < 0) return; if (x >= w) return;"),
    ],
)
def test_a_window_in_a_plane_stays_what_it_was(old: str, new: str, sizes: dict[str, int]) -> None:
    text = TEXT.replace(old, new) if old else TEXT
    text = text.replace("a[q * w + p];", "a[q * w + p]);") if "fmaxf" in new else text
    turned = new.startswith(ACROSS)
    made = slid(text, *((0, 1) if turned else (1, 0)))
    same_of_many(text, made, SHAPES, sizes, TUNED)


def test_guards_around_the_items_are_left_where_they_say_nothing_of_a_row() -> None:
    text = TEXT.replace(GUARD, "if (x < w && y < h && r < 50) {").replace("= s;", "= s;\n    }")
    made = slid(text)
    assert "if ((r < 50)) {" in applied(made).program.text
    same(text, made, SHAPES, {"w": 70, "h": 7, "r": 3}, TUNED)
    twice = TEXT.replace(GUARD, "if (r > 99 || y >= h) return; if (x >= w) return;")
    assert "if (r > 99) return;" in applied(slid(twice)).program.text


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (GUARD, "if (x >= w || y >= h || y < 2) return;", "a guard says more of a row than that it is there"),
        ("q >= 0", "q >= 0 && e != 2", "a round depends on more than where it stands"),
        ("= y + e", "= 2 * y + e", "a round depends on more than where it stands"),
        ("e <= r", "e <= y % 5", "each row may have another number of rounds"),
        ("s += a[q * w + p]", "s += a[q * w + p] * y", "a round depends on more than where it stands"),
        (DOWN, "for (int e = -r; e <= r; e++) if (y > 2 * e)", "a round depends on more than where it stands"),
    ],
)  # fmt: skip
def test_what_is_no_such_window_is_refused(old: str, new: str, reason: str) -> None:
    assert refused(slid(TEXT.replace(old, new)))[0] == reason


def test_loops_side_by_side_are_no_window() -> None:
    text = TEXT.replace(ROUND, f"{ROUND} }} for (int f = 0; f < 2; ++f) {{ s += 1.0f;")
    made = applied(as_counted(kernel(text), 1, is_simple))
    assert isinstance(slid_planes(made, 1, 2), Refused)
