"""Locals that each round of a loop turns from 0 to 1 and back."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.flipped import flipped
from optiml_magic.kernels.primitives.one_row import one_row

from .alike import end_of, kernel_of, refused, written
from .test_one_row import ARRAYS, HEAD, SIZES, filled

HELD = "float d[2][16]; int cur = 1; "


def rounds(
    turn: str, held: str = HELD, old: str = "d[1 - cur]", after: str = "d[1 - cur][w]"
) -> str:
    fill = filled("d[cur]", old, "NEW[0] = a;")[:-1]
    return f"{held} for (int b = 0; b <= w; ++b) d[0][b] = b; {fill} {turn} }} y[i] = {after};"


@pytest.mark.parametrize(
    "body",
    [
        rounds("cur = 1 - cur;"),
        rounds("cur ^= 1;", old="d[cur ^ 1]", after="d[!cur][w]"),
        rounds("cur = !cur;", old="d[!cur]"),
        rounds("cur = cur ^ 1;", held="float d[2][16]; unsigned cur = 1; "),
        rounds("int t = cur; cur = prev; prev = t;", held=f"{HELD}int prev = 0; ", old="d[prev]", after="d[prev][w]"),
        rounds("cur = 1 - cur;").replace("int a = 1; a <= m", "int a = 0; a < m").replace("a - 1]", "a]"),
    ],
)  # fmt: skip
def test_it_is_the_number_of_the_round(body: str) -> None:
    text = HEAD % body
    made = written(flipped(kernel_of(text)))
    assert "& 1" in made
    assert "[cur" not in made
    assert end_of(text, made, ARRAYS, *SIZES) == "same"
    assert "d_row[16]" in written(one_row(kernel_of(made)))


@pytest.mark.parametrize(
    "body",
    [
        rounds("cur = 2 - cur;"),
        rounds("cur = 1 - a;"),
        rounds("cur = 1 - cur;", held="float d[2][16]; int cur = m & 1; "),
        rounds("if (a > 2) cur = 1 - cur;"),
        rounds("{ int a = 2; d[cur][1] = a; } cur = 1 - cur;"),
        rounds("cur = 1 - cur; d[cur][3] = 1.0f;"),
        rounds("cur = 1 - cur;").replace("float cost", "cur = 1; float cost"),
        rounds("cur = 1 - cur;").replace("float cost", "if (m > 9) continue; float cost"),
        rounds("int t = cur; cur = prev; prev = t;", held=f"{HELD}int prev = 1; ", old="d[prev]"),
        f"{HELD} for (int r = 0; r < 3; ++r) {{ {rounds('cur = 1 - cur;', held='')} }}",
    ],
)
def test_what_turns_otherwise_stays(body: str) -> None:
    assert "no loop turns" in refused(flipped(kernel_of(HEAD % body)))
