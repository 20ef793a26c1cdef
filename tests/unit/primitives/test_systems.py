"""Linear recurrences of several states along rows, handed on from lane to lane."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.vectors import vectorised

from .shapes import applied, kernel, refused
from .test_scans import BLOCK, DOWN, OUT, UP, WARP, A, end, row, shared

START = "float s = 1, t = 0.5f, u = -1, v = 0; const float p = 0.3f, q = 0.4f;"
DIRECT = (
    f"const float in = {A}; float y = 0.2f * in + 0.4f * u + 0.1f * v - p * s - q * t;\n"
    f"v = u; u = in; t = s; s = y; {OUT} = y;"
)
TRANSPOSED = (
    f"float in = {A}; float y = 0.2f * in + s; s = 0.4f * in - p * y + t;\n"
    f"t = 0.1f * in - q * y; {OUT} = y;"
)
CANONICAL = f"float now = {A} - p * s - q * t; {OUT} = now + 2 * s + t; t = s; s = now;"
SPRING = f"float force = {A} - p * s - q * t; t += force * 0.1f; s += t * 0.1f; {OUT} = s;"
TRACKER = f"float at = s + 0.1f * t, off = {A} - at; s = at + p * off; t += q / 2 * off; {OUT} = s;"
THREE = f"s = 0.5f * s - t * 0.3f; t = p * s - u * q + {A}; u = 0.25f * (t + s); {OUT} = s + u;"
FUSED = f"float y = fmaf(-p, s, fmaf(-q, t, {A})); t = s; s = y; {OUT} = s;"
BODIES = {
    "direct": DIRECT, "transposed": TRANSPOSED, "canonical": CANONICAL, "spring": SPRING,
    "tracker": TRACKER, "three": THREE, "fused": FUSED,
}  # fmt: skip


@pytest.mark.parametrize("lanes", [WARP, BLOCK], ids=["warp", "block"])
@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_filters_oscillators_and_trackers(body: str, lanes: Lanes) -> None:
    text = row(body, start=START)
    made = shared(text, lanes)
    assert "_before_mixed<" in applied(made).program.text
    assert end(text, made, rounds=True) == "same"


@pytest.mark.parametrize("head", [UP, DOWN, "int c = 1; c != w; ++c", "int c = 2; c < w; c += 3"])
def test_rows_of_other_lengths_and_directions(head: str) -> None:
    text = row(TRANSPOSED, head, START)
    assert end(text, shared(text), rounds=True) == "same"


def test_states_of_double_in_several_warps_of_a_block() -> None:
    text = row(DIRECT.replace("float", "double"), start=START.replace("float", "double"))
    made = shared(text, BLOCK)
    assert end(text, made, rounds=True, THREADS=256) == "same"


def test_rounds_by_vectors() -> None:
    """A lane has the matrix of all rounds that it takes at once."""
    text = row(DIRECT, start=START)
    wide, at = vectorised(kernel(text), (0,))
    found = share(wide, at, WARP)
    assert "float4" in applied(found).program.text
    assert end(text, found, rounds=True) == "same"


def test_factors_that_are_loaded_are_where_the_first_round_is() -> None:
    """A row without rounds loads none, and what a round declares may be one."""
    body = f"float y = {A} - a[r * w] * 0.01f * s - k * t; t = s; s = y; {OUT} = y;"
    text = row("const float k = q * 2 - 0.1f;\n" + body, start=START)
    made = shared(text)
    assert "if (begun_c < w)" in applied(made).program.text
    assert end(text, made, rounds=True) == "same"


def test_what_states_give_is_scanned_in_turn() -> None:
    text = row(SPRING.replace(f"{OUT} = s;", f"u += s; v = fmaxf(v, s); {OUT} = u - v;"),
               start=START)  # fmt: skip
    made = shared(text)
    assert end(text, made, rounds=True) == "same"


def test_a_value_of_the_round_before_is_one_shuffle() -> None:
    text = row(f"const float in = {A}; {OUT} = in + 0.5f * s - t; t = s; s = in;", start=START)
    made = shared(text)
    assert "lanes_before_delayed<LANES>(s, s_part, there)" in applied(made).program.text
    assert end(text, made, content="odd") == "same"
    assert end(text, shared(text, BLOCK), content="odd") == "same"


def test_one_that_is_given_in_a_branch_alone_is_no_value_of_the_round_before() -> None:
    text = row(f"{OUT} = s; if ({A} > 0) s = {A};", start=START)
    made = shared(text)
    assert "delayed" not in applied(made).program.text
    assert end(text, made) == "same"


@pytest.mark.parametrize("lanes", [WARP, BLOCK], ids=["warp", "block"])
def test_a_chain_of_filters_each_of_what_the_last_one_gave(lanes: Lanes) -> None:
    body = (
        f"float in = {A}; {{ float y = 0.2f * in + s; s = 0.4f * in - p * y + t; t = in - q * y;\n"
        f"in = y; }} {{ float y = 0.3f * in + u; u = 0.1f * in - q * y + v; v = in - p * y;\n"
        f"in = y; }} {OUT} = in;"
    )
    text = row(body, start=START)
    assert end(text, shared(text, lanes), rounds=True) == "same"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (f"float y = s * t + {A};", "states are multiplied by each other"),
        (f"float y = sinf(s) + {A} - t;", "by more than sums and products"),
        (f"float y = {A} - t / s;", "by more than sums and products"),
        (f"float y = {A} - (int)t - s;", "by more than sums and products"),
        (f"float y = {A} - fmaxf(s, 0.0f) - t;", "by more than sums and products"),
        (f"float y = t > 0 ? {A} - s : s;", "by more than sums and products"),
        (f"float y = {A} - s; if (t > 0) y = s;", "depends on a state"),
        (f"float y = {A} - s - t; if ({A} > 0) y = t;", "changed together in a branch"),
        (f"float y = {A} - s - t; if ({A} > 2) break;", "what ends the loop"),
        (f"float y = {A} * 0.1f * s - t;", "`c` changes from round to round"),
        (f"float k = {A}; float y = k * s - t;", "`c` changes from round to round"),
        (f"float k = 1; float y = k * s - t; k = {A};", "`k` changes from round to round"),
        (f"float y = out[r] * s - t + {A};", "may meet"),
        (f"float y = last[r] * s - t + {A};", "a factor of its states is written"),
        (f"g = {A}; float y = z * s - t;", "`z` may be `g`"),
        (f"z = {A}; float y = g * s - t;", "`g` has another name"),
        (f"float y = {A} - g * s - t; g = 0.1f * c;", "`g` changes from round to round"),
        (f"int k = s; float y = {A} - k - t;", "`k` is not a plain float"),
        (f"half k = s; float y = {A} - __half2float(k) - t;", "`k` is not a plain float"),
        (f"float y[1]; y[0] = {A} - s - t;", "it combines what it has stored"),
        (f"g = {A} - s - t; float y = g;", "`g` goes beyond the round"),
        (f"float& o = t; float y = {A} - s - o;", "`o` may be `t`"),
        (f"float* o = &t; float y = {A} - s - *o;", "`t`"),
        (f"float y = {A} - s - t; *(&y) += s;", "`y` is not a plain float"),
        (f"float y = {A} - s; for (int j = 0; j < c; ++j) y -= t;", "not all rounds change"),
        (
            f"float y = {A} - s; for (int j = 0; j < 3; ++j) y -= t * j;",
            "changes from round to round",
        ),
        (f"float y = {A} - s - t - u - v - o; o = v; v = u; u = t;", "5 states"),
        (f"float y = {A} - s - (float)d; d = 0.5 * t;", "several types"),
    ],
)
def test_what_is_no_system_is_refused(change: str, reason: str) -> None:
    """Each with a value that depends on two of the rounds before."""
    start = f"{START} float o = 0, g = 1; double d = 0;{' float& z = g;' if 'z' in change else ''}"
    own = "y[0]" if "y[1]" in change else "y"
    text = row(f"{change} t = s; s = {own}; {OUT} = s;", start=start)
    assert reason in str(refused(shared(text)))


@pytest.mark.parametrize("kind", ["int", "unsigned", "long long"])
def test_whole_numbers_together_are_refused(kind: str) -> None:
    text = row(f"{kind} y = a[r * w + c] - n - m; m = n; n = y; {OUT} = n;",
               start=f"float s = 0; {kind} n = 0, m = 1;")  # fmt: skip
    assert "rounded" in refused(shared(text))[0] or "whole numbers" in refused(shared(text))[0]
