"""Windows that grow: what is offered, with which sizes as numbers, and what it is made of."""

from __future__ import annotations

from random import Random

import pytest

from tests.rewriting.offers import Offer, offers
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

SMOOTH = """
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void k(const float* a, float* o, int w, int h, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    int q = 0;
    while (sum < 9.0f && q < most) {
        q++;
        sum = 0.0f;
        for (int i = y - q; i <= y + q; i++)
            for (int j = x - q; j <= x + q; j++)
                if (i >= 0 && i < h && j >= 0 && j < w) sum += a[i * w + j];
    }
    o[y * w + x] = sum + 100 * q;
}"""
LINE = """
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, float* o, size_t n, size_t m) {
    size_t i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (size_t t = 0; t < m; t++) {
        %s
    }
}"""
PLANE = {"a": Array("f4", ("h", "w"), "positive"), "o": Array("f4", ("h", "w"), "zeros")}
ROWS = {"a": Array("f4", ("n", "m")), "o": Array("f4", ("n", "m"), "zeros")}


def found(one: Made) -> list[Offer]:
    """What the rule offers for a program, each of which does the same."""
    stand = Stand(one)
    drawn = offers(one.text, one.text, lambda: stand.facts(one.text), Random(0), each=4,
                   rules=["grow_window"])  # fmt: skip
    all_ = [offer for offer in drawn if isinstance(offer, Offer)]
    assert {stand.applied(offer, one.text).end for offer in all_} <= {"same", "narrowed"}
    return all_


def test_few_rounds_are_written_out(propose, compiles):
    sizes = {"w": 37, "h": 21, "most": 3}, {"w": 7, "h": 5, "most": 9}
    one = Made("box", SMOOTH, PLANE, *sizes, exact=False)
    out, rim = sorted(found(one), key=lambda offer: "written out" not in offer.title)
    assert out.title.endswith("rounds written out, where most is 3")
    assert "q < 3" in out.text
    assert out.text.count("#pragma unroll") == 3
    assert rim.title == "keep sum from round to round, and add what is new"
    assert "#pragma unroll" not in rim.text
    compiles(out.text)


def test_many_rounds_are_not(propose):
    one = Made("box", SMOOTH, PLANE, {"w": 37, "h": 21, "most": 9}, {"w": 7, "h": 5, "most": 1},
               exact=False)  # fmt: skip
    (rim,) = found(one)
    assert rim.rounds


@pytest.mark.parametrize(
    ("body", "has"),
    [
        ("float s = 0; for (size_t k = 0; k <= t; k++) s += a[i * m + k]; o[i * m + t] = s / (t + 1);", "const int k = t;"),
        ("o[i * m + t] = 0; for (size_t k = 0; k <= t; k++) o[i * m + t] += a[i * m + k];", "const int k = t;"),
        ("float s = 0; for (size_t k = t; k < m; k++) s += a[i * m + k]; o[i * m + t] = s;", "for (int t = m - 1; t >= 0; --t)"),
        ("float s = a[i * m]; for (size_t k = 1; k <= t; k++) if (a[i * m + k] > s) s = a[i * m + k]; o[i * m + t] = s;", "0 < m ? a[i * m] : 0"),
        ("int at = i % m, lo = at - t, hi = at + t; if (lo < 0) lo = 0; if (hi >= m) hi = m - 1; float s = 0; for (int k = lo; k <= hi; k++) s += a[i * m + k]; o[i * m + t] = s;", "if (t > 0)"),
    ],
)  # fmt: skip
def test_sums_of_all_beginnings(body: str, has: str) -> None:
    text = LINE % body
    if "int at" in body:
        text = text.replace("size_t", "int")
    (offer,) = found(Made("line", text, ROWS, {"n": 70, "m": 9}, {"n": 33, "m": 1}, exact=False))
    assert has in offer.text, offer.text


def test_nothing_is_said_where_no_range_grows(propose):
    assert not propose("grow_window", LINE % "o[i * m + t] = a[i * m + t];")
