"""Sums of groups that a loop around adds up: combined once, behind it."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.rows import finer, rows
from optiml_magic.kernels.primitives.vectors import vectorised

from .running import same_of_many as same
from .shapes import applied, kernel

WARP = Lanes("warp", 32, 256, (8, 16, 32), (128, 256))
BLOCK = Lanes("block", 256, 256, (128, 256), (128, 256))
APART = Lanes("apart", 4, 64, (2, 4, 8, 32), (64, 128))
STACKED = Lanes("stacked", 2, 64, (2, 4), (64, 128))
GROUPS = """\
#pragma optiml launch k grid(cdiv(h, 64)) block(64)
__global__ void k(const float* a, const float* x, const float* scale, float* out, int w, int g, int h) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= h) return;
    float acc = x[0];
    for (int i = 0; i < g; i++) {
        float part = 0.0f;
        for (int c = 0; c < w; c++) part += a[(r * g + i) * w + c] * x[i * w + c];
        acc += part * scale[r * g + i];
    }
    out[r] = acc;
}
"""
SHAPES = {"a": ("h", "g", "w"), "x": ("g", "w"), "scale": ("h", "g"), "out": ("h",)}
SIZES = {"h": 70, "g": 5, "w": 37}
ADDED = "        acc += part * scale[r * g + i];"
ONCE, EACH = "acc_part += ", "<LANES>(part)"


@pytest.mark.parametrize("lanes", [WARP, BLOCK, APART, STACKED])
@pytest.mark.parametrize(
    "added",
    [
        ADDED,
        "        acc -= part;",
        "        float t = scale[r * g + i] * (part + part); acc += -t;",
        "        if (i % 3 != 1) { acc += part / 4.0f; acc += x[i] * part; }",
        "        double far = part; if (scale[r * g + i] < 0.1f) continue; acc += (float)far / w;",
    ],
)
def test_lanes_keep_their_parts_until_the_loop_around_has_ended(lanes: Lanes, added: str) -> None:
    text = GROUPS.replace(ADDED, added)
    made = applied(share(kernel(text), (1,), lanes))
    assert ONCE in made.program.text or "acc_part -= " in made.program.text
    assert made.program.text.count("_sum<") == 1
    others = {"THREADS": 128} if lanes is BLOCK else {"LANES": 2 if lanes is STACKED else 8}
    same(text, made, SHAPES, SIZES, others, rounds=True)


def test_vectors_and_what_they_leave_are_one_part() -> None:
    plain, at = vectorised(kernel(GROUPS), (1,))
    made = applied(share(plain, at, WARP))
    assert made.program.text.count("_sum<") == 1
    same(GROUPS, made, SHAPES, {**SIZES, "w": 44}, {"LANES": 8}, rounds=True)


def test_two_sums_of_a_round_go_on_together() -> None:
    text = GROUPS.replace("float part = 0.0f;", "float part = 0.0f, more = 0.0f;").replace(
        "        acc +=", "        for (int c = 0; c < w; c++) more += a[(r * g + i) * w + c];\n"
        "        acc += more - "
    )  # fmt: skip
    made = applied(share(kernel(text), (1, 2), WARP))
    assert made.program.text.count("_sum<") == 1
    same(text, made, SHAPES, SIZES, {"LANES": 16}, rounds=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("part * scale[r * g + i];", "part * part;"),
        ("part * scale[r * g + i];", "fmaxf(part, 0.0f);"),
        ("part * scale[r * g + i];", "part + scale[r * g + i];"),
        ("part * scale[r * g + i];", "part / scale[r * g + i];"),  # nothing by 0 is no number
        ("part * scale[r * g + i];", "scale[r * g + i] / part;"),
        ("part * scale[r * g + i];", "part * scale[r * g + i]; if (part > 1.0f) acc += 1.0f;"),
        ("part * scale[r * g + i];", "part * scale[r * g + i]; acc *= 0.5f;"),
        ("part * scale[r * g + i];", "part * scale[r * g + i]; if (acc > 3.0f) acc = 3.0f;"),
        ("part * scale[r * g + i];", "part * scale[r * g + i]; acc += 1.0f;"),
        ("part * scale[r * g + i];", "part * (int)scale[r * g + i]; out[r] = part;"),
        ("float part = 0.0f;", "float part = 1.0f;"),
        ("float part = 0.0f;", "float part = x[i];"),
    ],
)
def test_what_is_no_multiple_of_the_part_needs_the_whole(old: str, new: str) -> None:
    text = GROUPS.replace(old, new)
    made = applied(share(kernel(text), (1,), WARP))
    assert ONCE not in made.program.text
    same(text, made, SHAPES, SIZES, {"LANES": 8}, rounds=True)


def test_a_shared_loop_that_asks_for_a_part_needs_the_whole() -> None:
    text = GROUPS.replace(
        "        acc +=", "        float more = 0.0f;\n"
        "        for (int c = 0; c < w; c++) more += a[(r * g + i) * w + c] * part;\n"
        "        acc += more + "
    )  # fmt: skip
    made = applied(share(kernel(text), (1, 2), WARP))
    assert made.program.text.count("_sum<LANES>(") > 1
    same(text, made, SHAPES, SIZES, {"LANES": 8}, rounds=True)


def test_whole_numbers_are_combined_each_time() -> None:
    text = GROUPS.replace("float part = 0.0f", "int part = 0").replace(
        "part += a[(r * g + i) * w + c] * x[i * w + c]", "part += (int)(8.0f * x[i * w + c])"
    )
    made = applied(share(kernel(text), (1,), WARP))
    assert ONCE not in made.program.text
    same(text, made, SHAPES, SIZES, {"LANES": 8}, rounds=True)


@pytest.mark.parametrize(
    ("old", "new", "counters"),
    [
        ("", "", ["c"]),
        ("part * scale[r * g + i];", "fmaxf(part, scale[r * g + i]);", []),
        ("float part = 0.0f;", "", ["c"]),
        ("c < w;", "c < 8;", []),
    ],
)
def test_rows_in_rows_are_finer_where_their_sums_go_on(
    old: str, new: str, counters: list[str]
) -> None:
    text = GROUPS.replace(old, new) if old else GROUPS
    if old.startswith("float part"):  # added to at once, times what is of the group
        text = text.replace("part += ", "acc += scale[r * g + i] * ").replace(ADDED, "")
    found = kernel(text)
    assert [a.variable.name for a in rows(found) if a.variable] == ["i"]
    assert [a.variable.name for a in finer(found, rows(found)) if a.variable] == counters
