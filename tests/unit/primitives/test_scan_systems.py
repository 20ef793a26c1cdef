"""Linear recurrences of few threads: blocks leap over the rounds of the parts before their own."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from tests.rewriting.writing import Array

from .alike import end_of, refused, written
from .test_scan_parts import COLUMNS, ONE, in_parts, text_of

C, OUT = "c[r * w + x]", "out[r * w + x]"
START = "float s = 1, t = 0.5f, u = -1, v = 0; const float p = 0.3f, q = 0.4f;"
DIRECT = (
    f"const float in = {C}; float y = 0.2f * in + 0.4f * u + 0.1f * v - p * s - q * t;\n"
    f"v = u; u = in; t = s; s = y; {OUT} = y;"
)
TRANSPOSED = (
    f"float in = {C}; float y = 0.2f * in + s; s = 0.4f * in - p * y + t;\n"
    f"t = 0.1f * in - q * y; {OUT} = y;"
)
AVERAGES = (
    f"s = 0.25f * {C} + 0.75f * s; t += 0.5f * ({C} - t); u = p * (s - t) + (1 - p) * u;\n"
    f"{OUT} = s - t - u;"
)
SUMMED = f"float fall = p * s; s -= fall; s += {C}; v += fall; {OUT} = v + s;"
KNOWN = f"const float k = p * 2; t = k * t + c[x] * 0.01f * s; s = q * s + {C}; {OUT} = t;"


def end(text: str, made: Kernel | Refused, content: str = "numbers") -> str:
    """At rows that parts share unevenly, at as many as there are parts, and at fewer."""
    arrays = {
        "c": Array("f4", ("h", "w"), content), "out": Array("f4", ("h", "w"), "zeros"),
        "last": Array("f4", ("w",), "zeros"),
    }  # fmt: skip
    after = written(made)
    found = [
        end_of(text, after, arrays, {"h": h, "w": 37}, {"h": other, "w": 5}, rounds=True)
        for h, other in ((61, 9), (7, 3), (64, 1))
    ]
    return next((one for one in found if one != "same"), "same")


def text(body: str, behind: str = "", start: str = START, whole: str = COLUMNS) -> str:
    return text_of((start, "0", body, behind), whole).replace("int*", "float*")


@pytest.mark.parametrize("parts", [2, 8])
@pytest.mark.parametrize("body", [DIRECT, TRANSPOSED, AVERAGES, SUMMED, KNOWN])
def test_filters_and_averages_in_parts(body: str, parts: int) -> None:
    """Also of fewer rounds than parts, where most of these have none."""
    before = text(body)
    assert end(before, in_parts(before, parts)) == "same"


def test_one_long_row() -> None:
    before = text(TRANSPOSED.replace("r * w + x", "r"), whole=ONE).replace("launch k", "launch k")
    made = in_parts(before)
    arrays = {
        "c": Array("f4", ("h",), "numbers"), "out": Array("f4", ("h",), "zeros"),
        "last": Array("f4", ("w",), "zeros"),
    }  # fmt: skip
    sizes = {"h": 301, "w": 1}, {"h": 6, "w": 1}
    assert end_of(before, written(made), arrays, *sizes, rounds=True) == "same"


def test_what_a_delay_forgets_is_forgotten_over_parts_as_well() -> None:
    """A NaN goes on to the two rounds behind it alone, wherever these are."""
    before = text(f"const float in = {C}; {OUT} = in + 0.5f * s - t; t = s; s = in;")
    assert end(before, in_parts(before), content="odd") == "same"


@pytest.mark.parametrize(
    ("body", "behind", "reason"),
    [
        (TRANSPOSED, "last[x] = s;", "what follows the loop asks for its last round"),
        (TRANSPOSED.replace("- p *", f"- {C} *"), "", "changes from round to round"),
        (f"s = s * s * 0.1f + {C}; {OUT} = s;", "", "goes from round to round"),
        (f"s = fmaxf(0.5f * s + {C}, 0); {OUT} = s;", "", "goes from round to round"),
        (f"s = 0.5f * s + {C}; if ({C} > 1) s = 0; {OUT} = s;", "", "begun anew and scaled"),
        (f"s = 0.5f * s + {C}; u = fmaxf(u, s); {OUT} = u;", "", "depends on what went before"),
        (f"n = n * 3 + {C}; {OUT} = n;", "", "`n` is rounded in each round"),
        (f"s = 0.5f * s + {C}; d += s; {OUT} = d;", "", "states of several types"),
        (f"s = 0.5f * s + last[x]; last[x] = s; {OUT} = s;", "", ""),
    ],
)
def test_what_has_no_matrix_of_its_own_is_refused(body: str, behind: str, reason: str) -> None:
    before = text(body, behind, f"{START} int n = 1; double d = 0;")
    assert reason in str(refused(in_parts(before)))
