"""Recurrences `s = a * s + b` along rows, handed on from lane to lane as pairs of both."""

from __future__ import annotations

import re

import pytest

from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.vectors import vectorised

from .shapes import applied, kernel, refused
from .test_scans import BLOCK, OUT, WARP, A, end, row, shared

EMA = f"s = 0.25f * {A} + 0.75f * s; {OUT} = s;"


def before(text: str) -> str:
    """The helpers that a result has."""
    return applied(shared(text)).program.text


@pytest.mark.parametrize(
    ("body", "lanes", "kind"),
    [
        (EMA, WARP, "float"),
        (EMA, BLOCK, "double"),
        (f"{OUT} = s; s += 0.5f * ({A} - s);", BLOCK, "float"),
    ],
    ids=["warp", "block of doubles", "block that stores before"],
)
def test_averages_that_forget(body: str, lanes: Lanes, kind: str) -> None:
    text = row(body, start=f"{kind} s = 1;", kind=kind)
    made = shared(text, lanes)
    assert "_before_scaled<" in applied(made).program.text
    assert end(text, made, "f8" if kind == "double" else "f4", rounds=True) == "same"


@pytest.mark.parametrize(
    "updates",
    [
        (
            f"s = {A} - s;",
            f"s *= 0.5f; s += {A};",
            f"s -= 0.125f * (s - {A});",
            f"s = fmaf({A} * 0.25f, s, 1.0f);",
        ),
        (
            f"s = (s * 3 + {A}) / 4;",
            f"s = {A} > 0 ? s + {A} : -s;",
            f"s = (float)({A} + 0.5 * s);",
            f"if ({A} > 0) s *= 0.5f; else s += {A};",
        ),
        (
            f"for (int q = 0; q < 3; ++q) s = s * 0.5f + {A} * q;",
            f"const float next = s * 0.5f + {A}; s = next;",
        ),
    ],
    ids=["sums", "others", "blocks"],
)
def test_every_spelling_of_what_is_linear(updates: tuple[str, ...]) -> None:
    """Each of a local of its own."""
    own = [re.sub(r"\bs\b", f"s{n}", update) for n, update in enumerate(updates)]
    names = [f"s{n}" for n in range(len(updates))]
    body = "\n".join([*own, f"{OUT} = {' + '.join(names)};"])
    text = row(body, start=f"float s = 0, {', '.join(f'{name} = 2' for name in names)};")
    assert end(text, shared(text), rounds=True) == "same"


@pytest.mark.parametrize(
    "update",
    [
        f"if ({A} > 1) s = 0; s += {A};",
        f"s = {A} > 1 ? {A} : s + {A};",
        f"if ({A} < -1) {{ s = {A}; }} else {{ s -= {A}; }}",
    ],
)
def test_segments_begin_anew_whatever_was_before_them(update: str) -> None:
    """NaN and infinities before the beginning of a segment are forgotten."""
    text = row(f"{update} {OUT} = s;", start="float s = 2;")
    assert "lanes_before_begun<LANES>(s, s_scale, s_part)" in before(text)
    assert end(text, shared(text), content="odd", rounds=True) == "same"


def test_segments_that_a_block_walks() -> None:
    text = row(f"if ({A} > 1) s = 0; s += {A}; {OUT} = s;", start="float s = 2;")
    assert end(text, shared(text, BLOCK)) == "same"


@pytest.mark.parametrize(
    ("update", "kind", "dtype"),
    [
        (f"s = s * 31 + {A};", "int", "i4"),
        (f"s = {A} - 2 * s;", "unsigned", "u4"),
        (f"if ({A} > 12) s = 1; s = s * {A} - 3;", "long long", "i8"),
        (f"s -= {A} * s + 2; s++;", "unsigned", "u4"),
    ],
)
def test_whole_numbers_wrap_to_the_same(update: str, kind: str, dtype: str) -> None:
    text = row(f"{update} {OUT} = s;", start=f"{kind} s = 7;", kind=kind)
    assert end(text, shared(text), dtype) == "same"


def test_one_recurrence_asks_for_another_in_its_factor() -> None:
    body = f"s = 0.5f * s + {A} * 0.125f;\nt = t * s * 0.0625f + 1;\n{OUT} = t + s;"
    text = row(body, start="float s = 0, t = 0;")
    assert end(text, shared(text), rounds=True) == "same"


def test_rounds_by_vectors_are_scaled_by_the_lane_itself() -> None:
    text = row(EMA)
    wide, at = vectorised(kernel(text), (0,))
    found = share(wide, at, WARP)
    assert "float4" in applied(found).program.text
    assert end(text, found, rounds=True) == "same"


def test_what_is_zero_stays_so_where_factors_leave_the_type() -> None:
    text = row(f"s = s * (1e30f * {A}) + 0 * {A}; {OUT} = s;")
    assert end(text, shared(text), content="positive", rounds=True) == "same"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (f"s = s * 2 + {A}; {OUT} = s;", "`s` grows from round to round"),
        (f"s = s * -1.5f + {A}; {OUT} = s;", "`s` grows from round to round"),
        (f"s += s + {A}; {OUT} = s;", "`s` grows from round to round"),
        (f"s = {A} > 0 ? s / 0.5f : 1; {OUT} = s;", "`s` grows from round to round"),
        (f"if ({A} > 1) s = 0; s = 0.5f * s + {A}; {OUT} = s;", "begun anew and scaled as well"),
        (f"s = {A} / s; {OUT} = s;", "`s` goes from round to round"),
        (f"s = s > 1 ? 0 : s + {A}; {OUT} = s;", "`s` goes from round to round"),
        (f"n = (int)(n * 0.5f) + 1; {OUT} = n;", "`n` goes from round to round"),
        (f"n = n / 2 + 1; {OUT} = n;", "`n` goes from round to round"),
        (f"n = n * 0.5f + {A}; {OUT} = n;", "`n` is rounded in each round"),
        (f"s = 0.5f * s + t; t = {A} * t + s; {OUT} = s;", "`c` changes from round to round"),
        (f"s = out[r * w + c - 1] * s * 0.5f + {A}; {OUT} = s;", "what another has stored"),
    ],
)
def test_what_is_no_recurrence_or_grows_is_refused(body: str, reason: str) -> None:
    text = row(body, start="float s = 0, t = 0; int n = 0;")
    assert reason in refused(shared(text))[0]
