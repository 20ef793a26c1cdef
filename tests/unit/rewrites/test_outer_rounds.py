"""Blocks that share the loops around short rows, where a thread each leaves the chip idle."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.model.facts import Facts, LaunchFacts
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.split_reduction import SplitReduction
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* o, int n, int p, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f, m = -1e30f;
    for (int a = 0; a < p; ++a) {
        ROW
    }
    o[i] = s + m;
}
"""
SUM = "for (int b = 0; b < c; ++b) { float v = x[(a * n + i) * c + b]; s += v; m = fmaxf(m, v); }"
ARRAYS = {"x": Array("f4", ("n", "p", "c")), "o": Array("f4", ("n",), "zeros")}


def ideas(text: str, n: int, p: int, c: int) -> list[Idea]:
    launch = LaunchFacts("k", 1, (-(-n // 64), 1, 1), (64, 1, 1), {}, {"n": n, "p": p, "c": c})
    view = replace(view_of(text), find_facts=lambda: Facts((launch,), {}, 1e-5, 1e-8, "h200"))
    found = RowToLanes().propose(parse_program(text), view)
    return [i for i in found if isinstance(i, Idea) and "a row of it each thread" in i.title]


@pytest.mark.parametrize(
    "row",
    [
        SUM,
        SUM.replace("s += v", "s += v * v"),
        SUM.replace("s += v", "s = s * 0.5f + v * m"),  # lanes hand on what is left of it
        "for (int b = 0; b < c; ++b) { o[i] = x[(a * n + i) * c + b]; }",
        SUM.replace("s += v;", "if (v > 0.0f) s += v;"),
        f"if (a % 3 == 1) continue; {SUM}",
        f"float w = 0.5f * (a + 1); {SUM.replace('s += v', 's += w * v')}",
        SUM.replace("b < c", "b < c - 1"),
        "float t = 0.0f; for (int b = 0; b < c; ++b) t += x[(a * n + i) * c + b]; s += t * t;",
        "for (int b = c - 1; b >= 0; --b) s += x[(a * n + i) * c + b];",
    ],
)
def test_a_block_shares_what_is_around_short_rows(row: str) -> None:
    text = TEXT.replace("ROW", row)
    (idea,) = ideas(text, 256, 4096, 16)
    after = idea.make()
    assert isinstance(after, str), after
    for sizes in ({"n": 5, "p": 133, "c": 7}, {"n": 2, "p": 1, "c": 16}, {"n": 67, "p": 9, "c": 1}):
        end = end_of(text, after, ARRAYS, sizes, {"n": 3, "p": 40, "c": 4}, rounds=True)
        assert end == "same"


@pytest.mark.parametrize(
    "row",
    [
        SUM.replace("s += v", "s += v / (1.0f + s)"),
        SUM + " if (s > 100.0f) break;",
        SUM + " if (s > 100.0f) return;",
        "for (int b = 0; b < c; ++b) { s += x[(a * n + i) * c + b]; o[i + b] = s; }",
        "for (int b = 0; b < c; ++b) { s += x[(a * n + i) * c + b]; } a += s > 3.0f;",
        "for (int b = 0; b < c; ++b) { s -= x[(a * n + i) * c + b] - s; }",
        "__syncwarp(); " + SUM,
    ],
)  # fmt: skip
def test_what_goes_from_row_to_row_is_not_shared(row: str) -> None:
    found = ideas(TEXT.replace("ROW", row), 256, 4096, 16)
    assert all(not isinstance(idea.make(), str) for idea in found)


@pytest.mark.parametrize(
    ("n", "p", "c"),
    [
        (1 << 20, 4096, 16),  # threads enough
        (256, 64, 16),  # few rows
        (256, 4096, 512),  # of which a warp or a block has each for itself
    ],
)
def test_it_is_for_few_threads_and_many_short_rows(n: int, p: int, c: int) -> None:
    assert not ideas(TEXT.replace("ROW", SUM), n, p, c)


@pytest.mark.parametrize(("c", "likely"), [(16, False), (512, True)])
def test_a_block_has_enough_in_each_row_of_a_part(c: int, likely: bool) -> None:
    text, n, p = TEXT.replace("ROW", SUM), 256, 4096
    launch = LaunchFacts("k", 1, (4, 1, 1), (64, 1, 1), {}, {"n": n, "p": p, "c": c})
    view = replace(view_of(text), find_facts=lambda: Facts((launch,), {}, 1e-5, 1e-8, "h200"))
    found = [i for i in SplitReduction().propose(parse_program(text), view) if isinstance(i, Idea)]
    (prior,) = [i.prior for i in found if "their threads the rows in it" in i.title]
    assert (prior > 0.5) == likely


STORED = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* o, int n, int p, int c) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int a = 0; a < p; ++a)
        for (int b = 0; b < END; ++b) o[i * 1024 + PLACE] = 2.0f * x[(a * n + i) * c + b];
}
"""
OUT = {"x": Array("f4", ("n", "p", "c")), "o": Array("f4", ("n", "1024"), "zeros")}


@pytest.mark.parametrize(
    ("place", "end", "where"),
    [
        ("a * 16 + b", "16", ""),
        ("a * 16 + b", "7", ""),
        ("a * 16 + 2 * b", "8", ""),
        ("a * 16 + b + 3", "9", ""),
        ("(47 - a) * 16 + b", "16", ""),
        ("a * 16 + b", "c", ", where c is 16"),
    ],
)
def test_rows_that_are_stored_lie_apart(place: str, end: str, where: str) -> None:
    text = STORED.replace("PLACE", place).replace("END", end)
    (idea,) = ideas(text, 256, 4096, 16)
    assert idea.title.partition(":")[0].endswith(f"a row of it each thread{where}")
    after = idea.make()
    assert isinstance(after, str), after
    for sizes in ({"n": 5, "p": 48, "c": 16}, {"n": 70, "p": 1, "c": 16}):
        assert end_of(text, after, OUT, sizes, {"n": 3, "p": 40, "c": 16}) == "same"


@pytest.mark.parametrize(
    ("place", "end"),
    [
        ("a * 16 + b", "17"),
        ("a * 16 + 2 * b", "9"),
        ("a * 15 + b", "16"),
        ("a * 16 + b", "c + 1"),
        ("a / 2 * 16 + b", "8"),
        ("a % 4 * 16 + b", "8"),
        ("a * c + b", "16"),
        ("(int)x[a] * 16 + b", "16"),
        ("a * 16 + (int)x[b]", "16"),
        ("(a & ~1) * 16 + b", "16"),
        ("a * 16 + b * a", "8"),
        ("a * 16 + b - 2 * (a % 8)", "16"),
        ("b", "16"),
    ],
)
def test_rows_that_may_meet_are_not_shared(place: str, end: str) -> None:
    found = ideas(STORED.replace("PLACE", place).replace("END", end), 256, 4096, 16)
    assert not [i for i in found if place != "a * c + b" and isinstance(i.make(), str)]
