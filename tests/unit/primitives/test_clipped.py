"""Loops of which comparisons turn rounds away, and those of which something else does."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.clipped import clipped, clips
from optiml_magic.proposers.rewrites.skip_rounds import SkipRounds
from tests.ideas import asked, made
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const int* c, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0;
    int last = -1;
    %s
    out[i * 2] = s;
    out[i * 2 + 1] = last;
}
"""
ARRAYS = {
    "a": Array("f4", ("n", "m")), "c": Array("i4", ("n",)), "out": Array("f4", ("n", "2"), "zeros"),
}  # fmt: skip
SIZES = {"n": 70, "m": 9}, {"n": 33, "m": 1}


def result(body: str) -> Kernel | Refused:
    return clipped(kernel_of(TEXT % body))


NEST = "for (int q = %s; ++q) { %s for (int k = %s; ++k) %s }"


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < m; ++k) if (i - k >= 0) last = k;",
        "for (int k = 0; k < m; ++k) if (i + k < n) last = k;",
        "for (int k = -3; k <= 3; ++k) { int t = i + k; if (t >= 0 && t < n) s += a[t]; }",
        "for (int k = 0; k < m; ++k) { int t = i - k; if (t < 0 || t > 4) continue; s += t; }",
        "for (int k = 0; k < m; ++k) { if (k < 2) continue; if (k > i) continue; last = k; s++; }",
        "for (int k = 0; k < m; ++k) { if (!(k > i)) { if (k >= c[i] % 3) last = k; } }",
        "for (int k = 0; k < m; ++k) if (k == i % 4) last = k;",
        "for (int k = i; k < n; ++k) { if (k - i < 5) s += a[k]; }",
        NEST % ("0; q < m", "", "0; k < m", "if (q + k == i % 7) last = q;"),
        NEST % ("-1; q < 2", "", "-1; k < 2", "if (q + i >= 0 && q + i < n && k >= q) last = k;"),
        NEST % ("-1; q < 2", "", "-1; k < 2", "{ if (q + i < 0 || k < q) continue; last = k; }"),
        NEST % ("0; q < m", "int t = i + q; if (t < 4) continue;", "0; k < t",
                "if (k < m && k >= q) { s += t; last = k; }"),
        "for (int k = 0; k < m; ++k) if (k >= 2 && a[k] > 0.5f) last = k;",
        "for (int k = 0; k <= (i < 5 ? 3 : 6); ++k) if (k >= i % 3) last = k;",
        "for (int k = 0; k < (i < 5 ? 3 : 6); ++k) if (k >= i % 3) last = k;",
        "for (int k = 0; k <= (i & 6); ++k) if (k >= i % 3) last = k;",
        "#pragma unroll 2\n    for (int k = 0; k < m; ++k) if (k <= i) last = k;",
        "for (long long k = 0; k < m; ++k) if (k <= i) last = (int)k;",
        "long long o = 3000000000LL + i; for (int k = 0; k < m; ++k) if (k + o > 3000000004LL) last = k;",
    ],
)  # fmt: skip
def test_such_rounds_are_not_made(body: str) -> None:
    after = written(result(body))
    assert after != TEXT % body
    assert end_of(TEXT % body, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < m; ++k) { last = k; if (k > i) continue; s += 1; }",
        "for (int k = 0; k < m; ++k) { if (k <= i) last = k; else s += 1; }",
        "for (int k = 0; k < m; ++k) { if (k <= i) last = k; s += 1; }",
        "for (int k = 0; k < m; ++k) { if (k > i) break; last = k; }",
        "for (int k = 0; k < m; ++k) { if (k <= last + 2) last = k; }",
        "for (int k = 0; k < m; ++k) { if (k <= i || k > 5) last = k; }",
        "for (int k = 0; k < m; ++k) { if (2 * k <= i) last = k; }",
        "for (int k = 0; k < m; ++k) { if (k * k <= i) last = k; }",
        "for (int k = 0; k < m; ++k) { if (c[k] > 0) last = k; }",
        "for (int k = 0; k < m; ++k) { int t = last++; if (k <= i) s += t; }",
        "for (int k = 0; k < m; ++k) { if (k > i && k++ < 4) last = k; }",
        "for (int k = 0; k < m; ++k) { if (k > i) { last = k; ++k; } }",
        "for (int k = 0; k < m; k += 2) { if (k <= i) last = k; }",
        "for (int k = m; k > 0; --k) { if (k <= i) last = k; }",
        "for (unsigned k = 0; k < m; ++k) { if (k <= i) last = k; }",
        "for (int k = 0; k < m; ++k) { if (i > 4) last = k; }",
        "s = m;",
        "for (int k = 0; k < 32; ++k) { int t = __ballot_sync(~0u, k > m); if (k <= i) last = t; }",
        "for (int k = 0; k < 32; ++k) { if (k <= i) last = __any_sync(__activemask(), k > m); }",
        "unsigned e = c[i]; for (int k = -m; k <= e; ++k) { if (k >= i - 2) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((int)(k * 2654435761u) < 0) last = k; }",
        "for (int k = 0; k < m; ++k) { unsigned u = k * 0x9E3779B1u; int t = u; if (t >= 0) last = k; }",
        "for (int k = 0; k < m; ++k) { if (k * 1103515245u > 0x40000000u) last = k; }",
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(result(body)) == "no comparison turns rounds away"


def test_the_rule_says_which_and_begins_with_it_where_most_are_turned_away() -> None:
    body = "for (int k = 0; k < n; ++k) { int t = i - k; if (t >= 0 && t < m) s += a[t] * c[k]; }"
    (idea,), refusals = asked(SkipRounds(), TEXT % body)
    assert not refusals
    assert idea.title == "make those rounds alone over k that comparisons let go on"
    (one,) = made([idea])
    assert end_of(TEXT % body, one.text, ARRAYS, *SIZES, rounds=True) == "same"


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("for (int k = 0; k < n; ++k) { int t = i - k; if (t >= 0 && t < m) s += a[t]; }", 4 / 400),
        ("for (int k = 0; k < n; ++k) if (k <= i) s += a[k];", 0.5),
        ("for (int k = -2; k < 3; ++k) { int t = i - k; if (t >= 0 && t < n) s += a[t]; }", 1.0),
        ("for (int k = 0; k < n; ++k) if (k < c[i]) s += a[k];", 1.0),
        ("for (int k = 0; k < c[i]; ++k) if (k < m) s += a[k];", None),
    ],
)
def test_what_is_left_of_them(body: str, left: float | None) -> None:
    text = TEXT % body
    stand = Stand(Made("one", text, ARRAYS, {"n": 400, "m": 4}, {"n": 9, "m": 3}))
    found = clips(kernel_of(text, stand.facts(text)))
    assert found.names == ("k",)
    assert found.left == (pytest.approx(left, abs=0.05) if left is not None else None)
