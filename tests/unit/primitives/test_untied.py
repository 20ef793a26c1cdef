"""Which of two equals is kept, said by a comparison that the order of rounds decides or not."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.kernels.changes import Change
from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.untied import untied
from optiml_magic.kernels.tree import Statement, Variable
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked, made
from tests.present import examples
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
struct Best {{ float v; int i; }};
__device__ Best better(Best a, Best b) {{
    if (b.v > a.v || (b.v == a.v && b.i < a.i)) return b;
    return a;
}}
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, int* out, int n, int m) {{
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    float b = {begin};
    int at = {at};
    for ({head}) {{
        float v = a[r * m + c];
        {body}
    }}
    out[r] = at * 64 + (int)(b * 4.0f);
}}
"""
ARRAYS = {"a": Array("f4", ("n", "m"), "odd"), "out": Array("i4", ("n",), "zeros")}
UP, DOWN = "int c = 0; c < m; ++c", "int c = m - 1; c >= 0; --c"
TAKE = "{ b = v; at = c; }"


def text_of(body: str, head: str = UP, at: str = "0", begin: str = "-1e30f") -> str:
    return TEXT.format(body=body, head=head, at=at, begin=begin)


def ends(before: str, found: Kernel | Refused) -> str:
    after = written(found)
    assert after != before
    return end_of(before, after, ARRAYS, {"n": 70, "m": 19}, {"n": 33, "m": 1})


@pytest.mark.parametrize(
    ("test", "head", "at", "left"),
    [
        ("v > b || (v == b && c < at)", UP, "0", "v > b"),
        ("v > b || (v == b && c < at)", UP, "-1", "v > b"),
        ("v > b || (v == b && at > c)", UP, "0", "v > b"),
        ("v > b || (b == v && c <= at)", UP, "-1", "v > b"),
        ("v > b || (v == b && c > at)", UP, "-1", "v >= b"),
        ("v > b || (v == b && c >= at)", UP, "0", "v >= b"),
        ("(v == b && c > at) || v > b", UP, "-1", "v >= b"),
        ("v < b || (v == b && c < at)", UP, "0", "v < b"),
        ("v >= b && (v > b || c < at)", UP, "0", "v > b"),
        ("v != b ? v > b : c < at", UP, "0", "v > b"),
        ("v == b ? c > at : v > b", UP, "-1", "v >= b"),
        ("!(v < b || (v == b && c > at))", UP, "-1", "!(v <= b)"),
        ("v > b || (v == b && c > at)", DOWN, "m - 1", "v > b"),
        ("v > b || (v == b && c <= at)", DOWN, "m - 1", "v >= b"),
        ("v > b || (v == b && c < at)", "unsigned c = 0; c < m; c += 2", "0", ""),
        ("v > b || (v == b && c < at)", "int c = threadIdx.x % 3; c < m; c += blockDim.x / 8", "0", "v > b"),
        ("v > b || (v == b && c < at)", "int c = 1; c < m; c++", "0", "v > b"),
        ("v > b || (v == b && c < at)", "int c = 1; c < m; c++", "3", ""),
        ("v > b || (v == b && c > at)", UP, "0", ""),
        ("v > b || (v == b && c <= at)", UP, "0", ""),
        ("v > b || (v == b && c < at)", UP, "m", ""),
        ("v > b || (v == b && c < at)", DOWN, "m - 1", ""),
        ("v > b || (v == b && c < at)", "int c = 0; c < m; c += c < 3 ? 1 : 2", "0", ""),
    ],
)  # fmt: skip
def test_what_the_order_of_rounds_says_is_not_asked(
    test: str, head: str, at: str, left: str
) -> None:
    before = text_of(f"if ({test}) {TAKE}", head, at)
    found = untied(kernel_of(before))
    if not left:
        assert refused(found) == "no loop asks which of two rounds was the earlier one"
        return
    assert f"if ({left}) {{" in written(found)
    assert ends(before, found) == "same"


@pytest.mark.parametrize(
    "body",
    [
        f"if (v > b) {TAKE} else if (v == b && c < at) at = c;",
        f"if (v > b) {TAKE} if (v == b && c < at) at = c;",
        "bool t = v > b || (v == b && c < at); b = t ? v : b; if (t) at = c;",
        f"const int d = c; if (v > b || (v == b && d < at)) {TAKE}",
        "int d; d = c; if (v > b || (v == b && d < at)) { b = v; at = d; }",
        f"for (int q = 0; q < 2; q++) if (v * q > b || (v * q == b && c < at)) {TAKE}",
    ],
)
def test_other_ways_to_say_it(body: str) -> None:
    before = text_of(body)
    found = untied(kernel_of(before))
    assert "< at" not in written(found)
    assert ends(before, found) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "if (v > b || (v == b && c < at)) { b = v; at = c + 1; }",
        "if (v > b || (v == b && c < at)) { b = v; at = c; } if (v < 0) at = m;",
        "int* p = &at; if (v > b || (v == b && c < at)) { b = v; at = c; } *p += 1;",
        "int& q = at; if (v > b || (v == b && c < at)) { b = v; at = c; } q += 1;",
        "int d = c; if (v < 0) d = 7; if (v > b || (v == b && d < at)) { b = v; at = d; }",
        "if (v > b || (v == b && c < at++)) { b = v; at = c; }",
        "for (int q = 0; q < 2; q++) if (v > b || (v == b && q < at)) { b = v; at = c; }",
        "for (int q = 0; q < 2; q++) if (v > b || (v == b && q < at)) { b = v; at = q; }",
        f"if (v > b || (v == b && (short)c < at)) {TAKE}",
    ],
)
def test_others_stay(body: str) -> None:
    assert isinstance(untied(kernel_of(text_of(body))), Refused)


def test_a_number_without_a_sign_is_not_below_zero() -> None:
    body = f"if (v > b || (v == b && c < at)) {TAKE}"
    before = text_of(body, UP.replace("int", "unsigned"), "0").replace("int at", "unsigned at")
    assert ends(before, untied(kernel_of(before))) == "same"
    assert isinstance(untied(kernel_of(before.replace("at = 0", "at = -1"))), Refused)


def test_a_loop_around_may_bring_a_later_one() -> None:
    body = f"if (v > b || (v == b && c < at)) {TAKE}"
    again = text_of(body).replace("for (int c", "for (int q = 0; q < 2; q++) for (int c")
    assert isinstance(untied(kernel_of(again)), Refused)


@pytest.mark.parametrize(
    "body",
    [
        f"if (v > b || (v == b && c < at)) {TAKE}",
        f"if (v < b || (v == b && c > at)) {TAKE}",
    ],
)
def test_lanes_share_what_is_left(body: str) -> None:
    before = text_of(body, at="-1", begin="a[r * m]")
    ideas, refusals = asked(RowToLanes(), before)
    assert not refusals
    assert ideas
    for one in made(ideas):
        assert "__shfl_xor_sync" in one.text
        assert end_of(before, one.text, ARRAYS, {"n": 70, "m": 29}, {"n": 33, "m": 1}) == "same"


@pytest.mark.parametrize(
    "step",
    [
        "best = better(best, cand);",
        "if (cand.v > best.v) best = cand;",
        "best = cand.v > best.v ? cand : best;",
        "best = !(cand.v > best.v || (cand.v == best.v && cand.i < best.i)) ? best : cand;",
    ],
)
@pytest.mark.parametrize(
    "cand", ["Best cand; cand.v = v; cand.i = c;", "const Best cand = {v, c};"]
)
def test_lanes_share_extremes_in_structures(step: str, cand: str) -> None:
    before = text_of(f"{cand} {step}").replace("int at = 0;", "Best best = {b, 0};")
    before = before.replace("at * 64 + (int)(b", "best.i * 64 + (int)(best.v")
    ideas, refusals = asked(RowToLanes(), before)
    assert not refusals
    assert ideas
    for one in made(ideas[:1]):
        assert "__shfl_xor_sync" in one.text
        assert end_of(before, one.text, ARRAYS, {"n": 70, "m": 29}, {"n": 33, "m": 1}) == "same"


def drawn(rng: Random) -> str:
    """An extreme with some test of the place, which the order of rounds may decide."""
    above, beside = rng.choice("<>"), rng.choice(["<", "<=", ">", ">="])
    place = rng.choice(["c {} at", "at {} c"]).format(beside)
    equal = rng.choice([f"v == b && {place}", f"{place} && b == v"])
    test = rng.choice([
        f"v {above} b || ({equal})", f"({equal}) || v {above} b", f"!(v {above} b || ({equal}))",
        f"v {above}= b && (v {above} b || {place})", f"v != b ? v {above} b : {place}",
    ])  # fmt: skip
    head = rng.choice([UP, DOWN, "int c = 2; c < m; c += 3", "int c = m - 2; c > 0; c -= 2"])
    at = rng.choice(["0", "-1", "m - 1", "m", "1", "m - 2", "2", "5"])
    begin = rng.choice(["0.0f", "-1e30f", "1e30f", "a[r * m]", "1.0f"])
    return text_of(f"if ({test}) {TAKE}", head, at, begin)


def test_what_is_drawn_stays_the_same() -> None:
    done = 0
    for seed in range(examples(60, 600)):
        before = drawn(Random(seed))
        found = untied(kernel_of(before))
        if isinstance(found, Kernel) and done < examples(8, 200):
            done += 1
            assert ends(before, found) == "same", before
    assert done


def test_each_statement_of_a_loop_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[int] = []
    changed = Effects.changed

    def counted(effects: Effects, *statements: Statement) -> dict[Variable, list[Change]]:
        looked.append(len(statements))
        return changed(effects, *statements)

    monkeypatch.setattr(Effects, "changed", counted)
    body = "".join(f"{{ int at_{n} = c; if (v > b) b = v + at_{n}; }}" for n in range(100))
    text = TEXT.format(begin="a[r * m]", at="0", head=UP, body=body)
    assert refused(untied(kernel_of(text))).startswith("no loop asks")
    assert len(looked) < 1000  # of 100 locals and some 400 statements
