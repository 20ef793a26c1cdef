"""Extremes that lanes look for, with what is assigned along with them: of equals the right one."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.kernels.primitives.vectors import vectorise
from tests.present import SOAK

from .running import Shapes, same
from .shapes import ROWS, applied, kernel, refused

WARP = Lanes("warp", 8, 32, (8, 32), (32, 64))
BLOCK = Lanes("block", 64, 64, (64,), (64,))
PLACE = """\
float best = a[r * w]; int p = {at};
for ({head}) {{
    if (a[r * w + c] {test} best) {{ best = a[r * w + c]; p = {found}; }}
}}
out[r] = best * 4096.0f + p;"""
UP, DOWN = "int c = 0; c < w; ++c", "int c = w - 1; c >= 0; --c"
SIZES = {"w": 21, "h": 2}
SHAPES = {"a": ("h", "w"), "at": ("i4", "w"), "out": ("h",)}


def also(
    text: str, found: Kernel | Refused, shapes: Shapes = SHAPES, sizes: Mapping[str, int] = SIZES
) -> None:
    """What runs in make soak alone: two seconds each."""
    applied(found)
    if SOAK:
        same(text, found, shapes, sizes)


def place(test: str = ">", head: str = UP, at: str = "-1", found: str = "c") -> str:
    return ROWS % PLACE.format(test=test, head=head, at=at, found=found)


def shared(text: str, lanes: Lanes = WARP) -> Kernel | Refused:
    return share(kernel(text), (0,), lanes)


@pytest.mark.parametrize(
    ("test", "head", "word"),
    [
        (">", UP, "greatest_first"),
        (">=", UP, "greatest_last"),
        ("<", UP, "least_first"),
        ("<=", DOWN, "least_first"),
        (">", DOWN, "greatest_last"),
    ],
)
def test_of_equals_the_one_that_the_loop_keeps(test: str, head: str, word: str) -> None:
    """Rows of eighths have many equals; the counter falls in two of these."""
    text = place(test, head)
    found = shared(text)
    assert f"lanes_{word}<LANES>(best, best_c, p);" in applied(found).program.text
    check = same if test == ">=" else also
    check(text, found, SHAPES, SIZES)


def test_warps_of_a_block_and_two_that_go_along() -> None:
    text = place(">=", found="at[c]").replace("int p", "float q = 0; int p")
    text = text.replace("p = at[c];", "p = at[c]; q = 2.0f * c;").replace("+ p;", "+ p + q;")
    found = shared(text, BLOCK)
    assert "block_greatest_last<THREADS>(best, best_c, q, p);" in applied(found).program.text or (
        "block_greatest_last<THREADS>(best, best_c, p, q);" in applied(found).program.text
    )
    same(text, found, SHAPES, SIZES)


@pytest.mark.parametrize(
    ("head", "before"),
    [
        (UP, "int best_c = -1;"),
        (DOWN, "int best_c = w - 1 + 1;"),
        ("unsigned c = r; c < w; ++c", "long long best_c = (long long)(r) - 1;"),
        ("unsigned c = 0; c < w; ++c", "long long best_c = -1;"),
    ],
)
def test_what_the_loop_began_with_was_found_before_its_rounds(head: str, before: str) -> None:
    assert before in applied(shared(place(">=", head))).program.text


def test_of_vectors_each_loop_has_its_own_combination() -> None:
    text = place().replace("a[r * w + c]", "v").replace("if (v", "float v = a[r * w + c]; if (v")
    vectors = applied(vectorise(kernel(text), 0))
    found = share(vectors, (0, 2), WARP)
    assert applied(found).program.text.count("lanes_greatest_first<LANES>(best,") == 2
    also(text, found)


def test_a_nan_is_passed_over_or_stays_from_the_start() -> None:
    text = place().replace("a[r * w + c]", "sqrtf(a[r * w + c])").replace("best * 4096.0f + p", "p")
    also(text, shared(text))
    begun = text.replace("= a[r * w];", "= sqrtf(a[r * w]);")
    same(begun, shared(begun), SHAPES, SIZES)


def test_several_choices_on_one_condition_are_a_branch() -> None:
    choices = """\
float best = a[r * w]; int p = 0;
for (int c = 0; c < w; ++c) {
    const float v = a[r * w + c];
    const bool more = v > best;
    best = more ? v : best;
    p = more ? c : p;
}
out[r] = best * 4096.0f + p;"""
    text = ROWS % choices
    found = applied(branched(kernel(text)))
    assert "if (more) {" in found.program.text
    also(text, share(found, (0,), WARP))
    twice = text.replace("more ? c", "v > best ? c")  # `best` is another one by then
    assert refused(branched(kernel(twice)))[0] == "no two choices have one condition"
    before = text.replace("const bool more = v > best;", "p = v > best ? c : p;")
    before = before.replace("best = more ? v", "best = v > best ? v").replace(
        "p = more ? c : p;", ""
    )
    also(before, share(applied(branched(kernel(before))), (0,), WARP))
    mixed = text.replace("int p = 0", "long long p = 0").replace("more ? c", "more ? 1.0f * c")
    assert refused(branched(kernel(mixed)))[0] == "no two choices have one condition"


def test_the_first_element_is_no_better_than_itself() -> None:
    text = place(head=UP.replace("0", "1", 1), at="0")
    found = unpeeled(kernel(text), 0)
    assert "for (int c = 0; c < w; ++c)" in applied(found).program.text
    also(text, found)
    assert refused(unpeeled(kernel(text.replace("] > best", "] >= best")), 0))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            "best = a[r * w + c]; p = c;",
            "p = best; best = a[r * w + c];",
            "what it combines depends on the rounds before",
        ),
        ("p = c; }", "p = c; } at2 += p;", "`p` is asked for in the loop"),
        ("int p", "bool p", "a shuffle does not carry bool"),
        ("p = c; }", "out[r] = c; }", "two rounds may store to one element"),
        ("> best) {", "> best || c == 3) {", "what it combines depends on the rounds before"),
        ("if (a[r * w + c] > best)", "if (!(a[r * w + c] <= best))", "`best` takes a NaN"),
        ("++c", "c += h", "whether its counter grows is not known"),
    ],
)
def test_what_is_not_certain_of_a_selection_is_refused(old: str, new: str, reason: str) -> None:
    text = place().replace("int p", "int at2 = 0; int p")
    assert old in text
    assert refused(shared(text.replace(old, new)))[0].startswith(reason)


def test_whole_numbers_know_no_nan() -> None:
    text = place().replace("const float* a", "const int* a").replace("float best", "int best")
    text = text.replace("a[r * w + c] > best", "!(a[r * w + c] <= best)")
    shapes = {**SHAPES, "a": ("i4", "h", "w")}
    also(text, shared(text), shapes)
