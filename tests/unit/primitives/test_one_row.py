"""Tables of which each round of a loop fills a row from the one before, as one row."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.one_row import one_row
from optiml_magic.proposers.rewrites.skew_sweeps import SkewSweeps
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* y, int n, int m, int w) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    %s
}
"""
ARRAYS = {"x": Array("f4", ("n", "m")), "y": Array("f4", ("n",))}
SIZES = ({"n": 70, "m": 15, "w": 13}, {"n": 3, "m": 2, "w": 1})
FILL = (
    "for (int a = 1; a <= m; ++a) { FIRST; for (int b = 1; b <= w; ++b) {"
    " float cost = x[i * m + a - 1] < x[i * m + b - 1] ? 0.5f : 1.25f;"
    " NEW[b] = fminf(OLD[b - 1] + cost, fminf(OLD[b], NEW[b - 1]) + 1.0f); } }"
)


def filled(new: str, old: str, first: str = "") -> str:
    """The rounds, with the words for the row that is filled and the one before."""
    words = FILL.replace("NEW", new).replace("OLD", old)
    return words.replace("FIRST;", first.replace("NEW", new))


TABLES = {
    "a table": (
        "float d[16][16]; for (int a = 0; a <= m; ++a) d[a][0] = 0.5f * a; for (int b = 0; b <= w; ++b) d[0][b] = b;"
        + filled("d[a]", "d[a - 1]") + " y[i] = d[m][w];"
    ),
    "a table, both at once": (
        "float d[16][16]; for (int a = 0; a <= 15; ++a) { d[a][0] = 0.5f * a; d[0][a] = a; }"
        + filled("d[a]", "d[a - 1]") + " y[i] = d[m][w];"
    ),
    "a table, whose rows begin in turn": (
        "float d[16][16]; for (int b = 0; b <= w; ++b) d[0][b] = b;"
        + filled("d[a]", "d[a - 1]", "NEW[0] = 2.0f * a;") + " float s = 0; for (int b = 0; b <= w; ++b) s += d[m][b]; y[i] = s;"
    ),
    "two rows in turn": (
        "float d[2][16]; for (int b = 0; b <= w; ++b) d[0][b] = b;"
        + filled("d[a & 1]", "d[(a - 1) & 1]", "NEW[0] = a;") + " y[i] = d[m & 1][w];"
    ),
    "two rows, by a remainder": (
        "float d[2][16]; for (int b = 0; b <= w; ++b) d[0][b] = b;"
        + filled("d[a % 2]", "d[(a + 1) % 2]", "NEW[0] = a;") + " y[i] = d[m % 2][w];"
    ),
    "a row that is copied": (
        "float p[16], c[16]; for (int b = 0; b <= w; ++b) p[b] = b;"
        + filled("c", "p", "NEW[0] = a;")[:-1] + " for (int b = 0; b <= w; ++b) p[b] = c[b]; } y[i] = p[w];"
    ),
    "a shrinking row": (
        "float d[16][16]; for (int b = 0; b <= 14; ++b) d[0][b] = b < m ? x[i * m + b] : 0.5f;"
        "for (int a = 1; a < 14; ++a) for (int b = 0; b < 14 - a; ++b) d[a][b] = 0.5f * d[a - 1][b] + 0.25f * d[a - 1][b + 1];"
        "y[i] = d[13][0];"
    ),
    "one of two ways": (
        "float d[16][16]; for (int b = 0; b <= w; ++b) d[0][b] = 0; "
        "for (int a = 1; a <= m; ++a) { d[a][0] = 0; for (int b = 1; b <= w; ++b) {"
        " if (x[i * m + a - 1] < x[i * m + b - 1]) d[a][b] = d[a - 1][b - 1] + 1; else d[a][b] = fmaxf(d[a - 1][b], d[a][b - 1]); } } y[i] = d[m][w];"
    ),
}  # fmt: skip


@pytest.mark.parametrize("body", TABLES.values(), ids=TABLES)
def test_a_row_stands_for_all(body: str) -> None:
    text = HEAD % body
    made = written(one_row(kernel_of(text)))
    assert "_row[16];" in made
    assert "][" not in made
    assert end_of(text, made, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    "change",
    [
        (" y[i] = d[m][w];", " y[i] = d[m - 1][w];"),
        (" y[i] = d[m][w];", " y[i] = d[m][w + 1];"),
        ("d[a - 1][b - 1]", "d[a - 1][b - 2]"),
        ("d[a - 1][b - 1]", "d[a - 1][b + 1]"),
        ("d[a - 1][b - 1]", "d[a - 2][b - 1]"),
        ("d[a][0] = 0.5f * a;", "if (a < m) d[a][0] = 0.5f * a;"),
        ("d[a][0] = 0.5f * a;", "d[a][0] = x[i * m];"),
        ("a = 0; a <= m", "a = 0; a < m"),
        ("NEW[0] = a;", "d[1][3] = a;"),
        ("float cost =", "if (x[b] < 0.0f) continue; float cost ="),
        ("float cost =", "d[a][b] += d[a][b]; float cost ="),
        ("float d[16][16];", "float d[16][16]; float* p = d[1];"),
        ("float d[16][16];", "float d[16][16] = {};"),
    ],
)
def test_what_asks_for_more_keeps_its_table(change: tuple[str, str]) -> None:
    body = (
        "float d[16][16]; for (int a = 0; a <= m; ++a) d[a][0] = 0.5f * a; "
        "for (int b = 0; b <= w; ++b) d[0][b] = b;"
        + FILL.replace("NEW[b", "d[a][b").replace("OLD", "d[a - 1]")
        + " y[i] = d[m][w];"
    )
    first = change[0] if change[0].startswith("NEW") else ""
    body = body.replace("FIRST;", first)
    assert change[0] in body
    assert "row by row" in refused(one_row(kernel_of(HEAD % body.replace(*change))))


def test_a_table_that_rounds_of_a_loop_around_find_again_stays() -> None:
    fill = (
        "if (r == 0) for (int b = 0; b <= 14; ++b) d[0][b] = b < m ? x[i * m + b] : 0.5f;"
        " for (int a = 1; a < 14; ++a) for (int b = 0; b < 14 - a; ++b)"
        " d[a][b] = 0.5f * d[a - 1][b] + 0.25f * d[a - 1][b + 1]; s += d[13][0];"
    )
    around = "float s = 0.0f; for (int r = 0; r < 3; ++r) {{ {} }} y[i] = s;"
    outside = HEAD % f"float d[16][16]; {around.format(fill)}"
    assert "row by row" in refused(one_row(kernel_of(outside)))
    inside = HEAD % around.format(f"float d[16][16]; {fill.removeprefix('if (r == 0) ')}")
    assert end_of(inside, written(one_row(kernel_of(inside))), ARRAYS, *SIZES) == "same"


def test_a_copy_of_more_or_less_keeps_both_rows() -> None:
    body = TABLES["a row that is copied"]
    for copied in ("b = 1; b <= w", "b = 0; b < w", "b = 0; b <= m"):
        at = body.rindex("b = 0; b <= w")
        changed = body[:at] + copied + body[at + len("b = 0; b <= w") :]
        assert "row by row" in refused(one_row(kernel_of(HEAD % changed)))
    kept = body.replace("y[i] = p[w]", "y[i] = c[w]")
    assert "row by row" in refused(one_row(kernel_of(HEAD % kept)))


def test_rows_are_offered_alone_and_several_at_once() -> None:
    text = (HEAD % TABLES["a table"]).replace("[16]", "[200]")
    ideas, _ = asked(SkewSweeps(), text)
    assert [idea.move for idea in ideas] == ["skew_sweeps 0 row", "skew_sweeps 0 sweeps 0"]
    for idea in ideas:
        made = idea.make()
        assert isinstance(made, str)
        assert end_of(text, made, ARRAYS, *SIZES) == "same"
