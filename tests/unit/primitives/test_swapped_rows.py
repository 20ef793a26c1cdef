"""Two rows that each round of a loop exchanges by their pointers."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.one_row import one_row
from optiml_magic.kernels.primitives.swapped_rows import swapped_rows
from optiml_magic.proposers.rewrites.skew_sweeps import SkewSweeps
from tests.ideas import asked

from .alike import end_of, kernel_of, refused, written
from .test_one_row import ARRAYS, HEAD, SIZES, filled

HELD = "float p[16], c[16]; float *prev = p, *cur = c; "
SWAP = "float* t = prev; prev = cur; cur = t;"


def rounds(swap: str = SWAP, held: str = HELD, after: str = "y[i] = prev[w];") -> str:
    fill = filled("cur", "prev", "NEW[0] = a;")[:-1]
    return f"{held} for (int b = 0; b <= w; ++b) prev[b] = b; {fill} {swap} }} {after}"


@pytest.mark.parametrize(
    "body",
    [
        rounds(),
        rounds(held="float p[16]; float c[16]; float* prev = p; float* cur = c; "),
        rounds(held=f"{HELD} float* t; ", swap="t = cur; cur = prev; prev = t;"),
        rounds(after="y[i] = prev[w] + 0.5f;").replace("prev[b] = b", "p[b] = b"),
        rounds().replace("int a = 1; a <= m", "int a = 0; a < m").replace("a - 1]", "a]"),
        rounds(swap="std::swap(prev, cur);"),
    ],
)  # fmt: skip
def test_a_round_fills_the_row_of_its_number(body: str) -> None:
    text = HEAD % body
    if "std::" in text:
        text = f"#include <utility>\n{text}"
    made = swapped_rows(kernel_of(text))
    assert "rows[2][16]" in written(made)
    assert "prev" not in written(made).split("{", 1)[1]
    if "std::" not in text:
        assert end_of(text, written(made), ARRAYS, *SIZES) == "same"
    assert "rows_row[16]" in written(one_row(kernel_of(written(made))))


@pytest.mark.parametrize(
    "body",
    [
        rounds(after="y[i] = prev[w] + p[w];"),
        rounds(after="y[i] = t[w];", held=f"{HELD} float* t;", swap="t = prev; prev = cur; cur = t;"),
        rounds(swap="float* t = prev; prev = cur; cur = prev;"),
        rounds(swap="float* t = prev; prev = cur; cur = t; prev[0] = 2.0f;"),
        rounds(held="float p[16], c[17]; float *prev = p, *cur = c; "),
        rounds(held="float p[16], c[16]; float *prev = p, *cur = p; "),
        rounds(held=f"{HELD} prev = c; cur = p; "),
        rounds().replace("float cost", "if (m > 9) continue; float cost"),
        f"{HELD} for (int r = 0; r < 3; ++r) {{ {rounds(held='')} }}",
    ],
)  # fmt: skip
def test_what_is_exchanged_otherwise_stays(body: str) -> None:
    assert "change places" in refused(swapped_rows(kernel_of(HEAD % body)))


def test_they_are_offered_as_one_row() -> None:
    text = (HEAD % rounds()).replace("[16]", "[200]")
    ideas, _ = asked(SkewSweeps(), text)
    assert [idea.move for idea in ideas] == ["skew_sweeps 0 row", "skew_sweeps 0 sweeps 0"]
    for idea in ideas:
        made = idea.make()
        assert isinstance(made, str)
        assert end_of(text, made, ARRAYS, *SIZES) == "same"
