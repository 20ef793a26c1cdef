"""Windows with weights of rows times columns: sums along rows in a launch of their own."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.rewrites.separate_sums import SeparateSums
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

BLUR = """\
#pragma optiml launch blur grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void blur(const float* a, float* out, int w, int h, int r, float b) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f, all = 0.0f;
    for (int j = -r; j <= r; j++) {
        for (int i = -r; i <= r; i++) {
            int yy = min(max(y + j, 0), h - 1), xx = min(max(x + i, 0), w - 1);
            float g = expf(-(i * i + j * j) / b);
            sum += g * a[yy * w + xx];
            all += g;
        }
    }
    out[y * w + x] = sum / all;
}
"""
INSIDE = BLUR.replace("min(max(y + j, 0), h - 1)", "y + j").replace(
    "min(max(x + i, 0), w - 1);",
    "x + i;\n            if (yy < 0 || xx < 0 || yy >= h || xx >= w) continue;",
)
LARGER = (
    BLUR.replace("(w, 16)", "(w * r, 16)").replace("(h, 16)", "(h * r, 16)")
    .replace("x >= w || y >= h", "x >= w * r || y >= h * r").replace("y * w + x]", "y * w * r + x]")
    .replace("y + j", "(int)floorf((float)y / r) + j").replace("x + i", "(int)floorf((float)x / r) + i")
)  # fmt: skip
INDICES = """\
#pragma optiml launch blur grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void blur(const float* a, const float* f, float* out, int w, int h, int r, float b) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f, all = 0.0f;
    for (int j = -r; j <= r; j++)
        for (int i = -r; i <= r; i++)
            if (y + j >= 0 && y + j < h && x + i >= 0 && x + i < w) {
                sum += f[j + r] * f[i + r] * a[(y + j) * w + x + i];
                all += f[j + r] * f[i + r];
            }
    out[y * w + x] = sum / (fabsf(all) + b);
}
"""
ROUNDS = INDICES.replace(
    "if (y + j >= 0 && y + j < h && x + i >= 0 && x + i < w) {",
    "{\n if (y + j < 0 || y + j >= h) continue;\n if (x + i < 0 || x + i >= w) continue;",
)
BOUNDS = (
    INDICES.replace("int j = -r; j <= r", "int j = max(y - r, 0); j < min(y + r, h)")
    .replace("int i = -r; i <= r", "int i = max(x - r, 0); i <= min(x + r, w - 1)")
    .replace("if (y + j >= 0 && y + j < h && x + i >= 0 && x + i < w) ", "")
    .replace("f[j + r]", "(1.5f - j)")
    .replace("f[i + r]", "(2.5f + i)")
    .replace("(y + j) * w + x + i", "j * w + i")
)
BOX = INDICES.replace("f[j + r] * f[i + r] * ", "").replace("all += f[j + r] * f[i + r];", "all++;")
PLANE = Array("f4", ("h", "w"))
MADE = Made(
    "blur", BLUR, {"a": PLANE, "out": PLANE}, {"w": 37, "h": 23, "r": 3}, {"w": 5, "h": 40, "r": 1},
    {"b": 3.5}, exact=False,
)  # fmt: skip


def asked(made: Made) -> tuple[Stand, list[Idea], list[Refusal]]:
    """The rule's ideas for a program, of which the sizes are known."""
    stand = Stand(made)
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    found = [*SeparateSums().propose(parse_program(stand.text), view)]
    ideas = [one for one in found if isinstance(one, Idea)]
    return stand, ideas, [one for one in found if isinstance(one, Refusal)]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        (BLUR, "int yy = min(max(y + (j + k_2), 0), h - 1);"),
        (INSIDE, "if (yy >= 0 && yy < h)"),
        (BLUR.replace("min(max(y + j, 0), h - 1)", "y + j").replace(
            "float g", "if (yy < 0) yy = 0; if (yy >= h) yy = h - 1; float g"), "min(max(y"),
        (LARGER, "sum_part_found[(size_t)yy * r * w + x]"),
        (BLUR.replace("a[yy * w + xx]", "a[min(max(y + j, 0), h - 1) * w + xx]"), "int place"),
    ],
)  # fmt: skip
def test_rows_are_summed_up_before(text: str, rows: str) -> None:
    larger = {"out": Array("f4", ("h * r", "w * r"))} if text is LARGER else {}
    made = replace(MADE, text=text, arrays=MADE.arrays | larger)
    stand, (idea,), _ = asked(made)
    after = idea.make()
    assert isinstance(after, str), after
    assert rows in after, after
    assert [d.kernel for d in parse_program(after).launches] == ["blur_sum_part", "blur"]
    assert "size(a) >= h * w" in after
    found = stand.applied(Offer("separate_sums", "", after, rounds=True), stand.text)
    assert found.sound, f"{found.end}: {found.detail}\n{after}"


@pytest.mark.parametrize("text", [BLUR, INSIDE, INDICES, ROUNDS])
def test_planes_whose_sides_are_numbers(text: str) -> None:
    head, body = text.split("{", 1)
    for name, number in (("w", "37"), ("h", "23")):
        body = re.sub(rf"\b{name}\b", number, body)
        head = re.sub(rf"\b{name}, 16", f"{number}, 16", head)
    plane, sides = Array("f4", ("23", "37")), {"w": 37, "h": 23}
    arrays = {"a": plane, "f": Array("f4", ("2 * r + 1",)), "out": plane}
    arrays = arrays if "f[" in text else {"a": plane, "out": plane}
    others = {**sides, "r": 1}
    made = replace(MADE, text=f"{head}{{{body}", arrays=arrays, others=others)
    stand, (idea,), _ = asked(made)
    after = idea.make()
    assert isinstance(after, str), after
    found = stand.applied(Offer("separate_sums", "", after, rounds=True), stand.text)
    assert found.sound, f"{found.end}: {found.detail}\n{after}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (BLUR.replace("expf(-(i * i + j * j) / b)", "expf(-(i * j) / b)"), ""),
        (BLUR.replace("g * a[", "g * (y + i) * a["), ""),  # no threads come to the same sum
        (BLUR.replace("- 1), xx = min", "), xx = min"), "not have all rows"),
        (BLUR.replace("yy * w + xx", "yy + xx"), "all rows is not certain"),
        (BLUR.replace("a[yy * w + xx]", "a[yy * w + xx] * a[y * w + xx]"), ""),
    ],
)
def test_sums_that_are_not_the_same_stay(text: str, reason: str) -> None:
    _, ideas, refused = asked(replace(MADE, text=text))
    assert not ideas
    assert [reason in one.reason for one in refused] == [True] * bool(reason)


@pytest.mark.parametrize(
    ("text", "asked_for"),
    [
        (INDICES, "size(f) >= "),
        (ROUNDS, "size(f) >= "),
        (BOUNDS, "size(a) >= h * w"),
        (
            BOX.replace("all = 0.0f", "dummy = 0.0f; int all = 0").replace("fabsf(all)", "all"),
            "all_part",
        ),
    ],
)
def test_windows_that_end_where_the_plane_does(text: str, asked_for: str) -> None:
    arrays = {"a": PLANE, "f": Array("f4", ("2 * r + 1",)), "out": PLANE}
    stand, (idea,), _ = asked(replace(MADE, text=text, arrays=arrays))
    after = idea.make()
    assert isinstance(after, str), after
    assert asked_for in after, after
    found = stand.applied(Offer("separate_sums", "", after, rounds=True), stand.text)
    assert found.sound, f"{found.end}: {found.detail}\n{after}"


@pytest.mark.parametrize(
    ("text", "taps"),
    [
        (INDICES, ("2 * r",)),  # the last one is asked for by nobody whose row is inside
        (INDICES.replace("f[j + r] * f[i + r] * a", "f[j + r - 1] * f[i + r] * a"), ("2 * r + 1",)),
        (
            BOUNDS.replace("(2.5f + i)", "f[i]"),
            ("w",),
        ),  # no row may be within, and none is asked for
    ],
)
def test_what_may_not_be_there_is_not_loaded(text: str, taps: tuple[str, ...]) -> None:
    arrays = {"a": PLANE, "f": Array("f4", taps), "out": PLANE}
    _, ideas, _ = asked(replace(MADE, text=text, arrays=arrays))
    assert not ideas


PLANES = """\
#pragma optiml launch blur grid(cdiv(w, 16), cdiv(h, 16), planes) block(16, 16)
#define TAPS 5
__constant__ float taps[TAPS] = {0.1f, 0.2f, 0.4f, 0.2f, 0.1f};
__global__ void blur(const float* a, float* out, int w, int h, int planes) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    int p = blockIdx.z;
    if (x >= w || y >= h) return;
    float sum = 0.0f, squares = 0.0f;
    for (int j = 0; j < TAPS; j++)
        for (int i = 0; i < TAPS; i++) {
            int yy = y + j - TAPS / 2, xx = x + i - TAPS / 2;
            if (yy < 0 || yy >= h || xx < 0 || xx >= w) continue;
            float v = a[(p * h + yy) * w + xx], g = taps[j] * taps[i];
            sum += g * v;
            squares += g * v * v;
        }
    out[(p * h + y) * w + x] = squares - sum * sum;
}
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (PLANES, ""),
        (PLANES.replace("p * h + yy", "p * (h + 1) + yy"), "has all rows is not certain"),
        (PLANES.replace("p * h + yy", "(p + 1) * h + yy"), "has all rows is not certain"),
    ],
)
def test_windows_of_all_planes_are_summed_up_by_rows(text: str, reason: str) -> None:
    arrays = {
        "a": Array("f4", ("planes * 2", "h + 1", "w")),
        "out": Array("f4", ("planes", "h", "w")),
    }
    if not reason:
        arrays["a"] = arrays["out"]
    sizes = {"w": 37, "h": 23, "planes": 3}
    made = replace(
        MADE,
        text=text,
        arrays=arrays,
        sizes=sizes,
        others={"w": 3, "h": 9, "planes": 2},
        scalars={},
    )
    stand, ideas, refused = asked(made)
    if reason:
        assert reason in refused[0].reason
        return
    after = ideas[0].make()
    assert isinstance(after, str), after
    assert "sum += taps[j] * sum_part;" in after
    assert "require size(a) >= planes * h * w" in after, after
    found = stand.applied(Offer("separate_sums", "", after, rounds=True), stand.text)
    assert found.sound, f"{found.end}: {found.detail}\n{after}"
