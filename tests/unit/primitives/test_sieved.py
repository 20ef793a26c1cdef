"""Loops of which remainders turn rounds away, and those of which something else does."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.sieved import sieved
from optiml_magic.proposers.rewrites.skip_rounds import SkipRounds
from tests.ideas import asked, made
from tests.rewriting.offers import Offer, offers
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
TWO = (
    "for (int q = 0; q < m; q++) { for (int k = 0; k < m; k++) "
    "{ int t = i + 1 - q, u = i + 2 - k; if (%s) %s } }"
)
ARRAYS = {
    "a": Array("f4", ("n", "m")), "c": Array("i4", ("n",)), "out": Array("f4", ("n", "2"), "zeros"),
}  # fmt: skip


def result(body: str) -> Kernel | Refused:
    return sieved(kernel_of(TEXT % body))


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < 4; k++) { int t = i + 1 - k; if (t % 2 != 0) continue; s += t / 2; }",
        "for (int k = 0; k < 7; k++) { int t = i - k; if (t < 0 || t % 3 != 0) continue; s += a[t]; }",
        "for (int k = 0; k < m; k++) { if ((i + k) % 3 == 0 && k > 1) { s += a[i * m + k]; last = k; } }",
        "for (int k = 0; k < m; ++k) { if ((k - i) % 2) continue; s += a[i * m + k]; last = k; }",
        "for (int k = 0; k < m; ++k) { if (!((c[i] - k) % 5)) last = k; }",
        "#pragma unroll 2\n    for (int k = 0; k < m; ++k) { if (k % 2 == 0) last = k; }",
        "for (int q = 0; q < m; ++q) for (int k = 0; k < m; ++k) if ((q - k) % 4 == 0) last = k + q;",
        TWO % ("t % 2 == 0 && u % 3 == 0", "{ s += t / 2 + u; last = k; }"),
        TWO % ("!(t % 2) && u > 0", "last = q * 100 + k;"),
        TWO % ("t % 2 != 0 || u % 3 != 0", "continue; s += t + u;"),
        TWO % ("(i - q) % 2 == 0 && c[i] % 2 == 0", "s += q + k;"),
        "for (int k = 0; k < m; k++) { int t = i - k; if (t < 3) continue; if (t % 3) continue; s += t; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 == 0) continue; last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 3 == 1) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 3 == -1) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i + k) % 3 != c[i]) continue; last = k; s += k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 4 == i % 4 && k > 1) last = k; }",
        "for (unsigned k = 0; k < m; ++k) { if ((threadIdx.x + k) % 3 == 2) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((k + threadIdx.x / 3) % 5 == threadIdx.x % 3) last = k; }",
    ],
)
def test_they_are_passed_over(body: str) -> None:
    after = written(result(body))
    assert "turn < " in after
    sizes = {"n": 70, "m": 9}, {"n": 33, "m": 1}
    assert end_of(TEXT % body, after, ARRAYS, *sizes) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "for (int k = 0; k < m; ++k) { last = k; if ((i - k) % 2 != 0) continue; s += 1; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 3 == 0) continue; last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 3 > 1) last = k; }",
        "for (int k = 0; k < m; ++k) { if (k % 3 == 1 || k % 3 == 2) last = k; }",
        "for (int k = 0; k < m; ++k) { if (k % 3 == last) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 == 0) last = k; else s += 1; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 == 0) last = k; s += 1; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 != 0 && k > 1) continue; last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 == 0 || k > 1) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - 2 * k) % 4 == 0) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % m == 0) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k * k) % 2 == 0) last = k; }",
        "for (unsigned k = 0; k < m; ++k) { if ((i - k) % 3 == 0) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((last - k) % 2 == 0) last = k; }",
        "for (int k = 0; k < m; ++k) { int t = last++; if ((i - k) % 2 == 0) s += t; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 != 0) continue; if (k > 5) break; last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 != 0) break; last = k; }",
        "for (int k = 0; k < m; ++k) { if (k == 5) break; if ((i - k) % 2) continue; last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 == 0 && (i + k) % 3 == 0) last = k; }",
        "for (int k = 0; k < m; ++k) { if ((i - k) % 2 + (i - k) % 3 == 0) last = k; }",
        TWO.replace("q++) {", "q++) { last = q;") % ("t % 2 == 0", "s += u;"),
        TWO.replace("} }", "} last = q; }") % ("t % 2 == 0", "s += u;"),
        TWO % ("t % 2 == 0", "s += u; else s -= u;"),
        TWO % ("t % 2 == 0", "s += u; last = k;"),
        TWO.replace("k++", "k += 1 + last") % ("t % 2 == 0", "s += u;"),
    ],
)
def test_others_stay(body: str) -> None:
    assert refused(result(body)) == "no remainder turns rounds away"


def test_the_rule_makes_the_rounds_that_are_left() -> None:
    body = (
        "for (int k = 0; k < 4; k++) { int t = i + 1 - k; if (t % 2 != 0) continue; s += t / 2; }"
    )
    ideas, refusals = asked(SkipRounds(), TEXT % body)
    assert not refusals
    (idea,) = ideas
    assert idea.title == "make those rounds alone over k that a remainder lets go on"
    (one,) = made(ideas)
    assert "turn < 2" in one.text
    assert end_of(TEXT % body, one.text, ARRAYS, {"n": 70, "m": 9}, {"n": 33, "m": 1}) == "same"
    assert asked(SkipRounds(), TEXT % "s = 1;") == ([], [])


@pytest.mark.parametrize(
    "loop",
    [
        "for (int k = 1; k <= m; ++k)",
        "for (int k = i; k < i + m; k++)",
        "for (int k = m; k > 0; k--)",
    ],
)
def test_the_rule_counts_rounds_from_the_first(loop: str) -> None:
    body = loop + " { if ((k - c[i]) % 3 != 1) continue; s += k; last = k; }"
    (one,) = made(asked(SkipRounds(), TEXT % body)[0])
    assert end_of(TEXT % body, one.text, ARRAYS, {"n": 70, "m": 9}, {"n": 33, "m": 1}) == "same"


def test_a_remainder_of_what_has_no_sign() -> None:
    text = (TEXT % "for (int k = 0; k < m; ++k) { if (k % 3 == n % 3) last = k; }").replace(
        "int n,", "unsigned n,"
    )
    after = written(sieved(kernel_of(text)))
    assert end_of(text, after, ARRAYS, {"n": 70, "m": 9}, {"n": 71, "m": 4}) == "same"


def test_divisors_and_rounds_that_are_given_become_numbers() -> None:
    text = (TEXT % TWO % ("t % by == 0 && u % by == 0", "s += t / by;")).replace(
        "int n, int m)", "int n, int m, int by)"
    )
    one = Made("two", text, ARRAYS, {"n": 70, "m": 9, "by": 2}, {"n": 33, "m": 4, "by": 3})
    stand = Stand(one)
    found = [
        *offers(text, text, lambda: stand.facts(text), Random(0), each=2, rules=["skip_rounds"])
    ]
    (offer,) = (one for one in found if isinstance(one, Offer) and "remainder" in one.title)
    assert offer.title.endswith(
        "over q, k that a remainder lets go on, where by is 2, where m is 9"
    )
    assert "if (by == 2 && m == 9)" in offer.text
    assert stand.applied(offer, text).end == "same"


@pytest.mark.parametrize("between", ["", "\n", "// each of them\n", "/* wide */ "])
def test_how_a_loop_is_unrolled_stays_in_front_of_it(between: str) -> None:
    body = f"""#pragma unroll
    for (int q = 0; q < 3; ++q) {{
        int t = i - q;
        if (t < 0 || t % 2) continue;
        #pragma unroll
        {between}for (int k = 0; k < 3; ++k) {{
            int u = i - k;
            if (u < 0 || u % 2) continue;
            s += t * u;
        }}
    }}"""
    after = written(result(body))
    behind = [line.strip() for line in after.splitlines()]
    pragmas = [n for n, line in enumerate(behind) if line.startswith("#pragma unroll")]
    assert len(pragmas) == 2
    assert all("for (" in behind[n + 1] for n in pragmas), after
    assert end_of(TEXT % body, after, ARRAYS, {"n": 61, "m": 3}, {"n": 1, "m": 1}) == "same"
