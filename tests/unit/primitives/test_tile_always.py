"""Tiles of what data may leave out."""

from __future__ import annotations

from random import Random

import pytest

from tests.rewriting.offers import Offer, offers
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

TEXT = """\
#pragma optiml launch k grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)
__global__ void k(const int* mask, const float* x, const float* w, float* out, int n, int m, int d) {
    int j = blockIdx.x * 16 + threadIdx.x, i = blockIdx.y * 16 + threadIdx.y;
    if (i >= n || j >= m) return;
    float s = 0.0f;
    for (int k = 0; k < d; ++k) { EACH }
    out[i * m + j] = s;
}
"""
MASKED = "if (mask[i * d + k] > 3) s += x[k * m + j];"


def tiled(each: str, *, x: tuple[str, ...] = ("d * m",)) -> tuple[Stand, list[Offer]]:
    arrays = {
        "mask": Array("i4", ("n * d",)), "x": Array("f4", x), "w": Array("f4", ("n * d",)),
        "out": Array("f4", ("n * m",)),
    }  # fmt: skip
    sizes = {"n": 35, "m": 33, "d": 40}, {"n": 2, "m": 3, "d": 5}
    stand = Stand(Made("masked", TEXT.replace("EACH", each), arrays, *sizes, exact=False))
    text = stand.text
    found = offers(
        text, text, lambda: stand.facts(text), Random(0), each=2, rules=("blocked_product",)
    )
    return stand, [one for one in found if isinstance(one, Offer)]


@pytest.mark.parametrize(
    "each",
    [
        MASKED,
        "if (w[i * d + k] > 0.0f) s += w[i * d + k] * x[k * m + j];",
        "switch (mask[i * d + k] & 3) { case 1: s += x[k * m + j]; break; case 2: s -= x[k * m + j]; }",
        "s += mask[i * d + k] ? x[k * m + j] : 0.5f;",
    ],
)
def test_what_data_leave_out_is_in_the_tile(each: str) -> None:
    stand, found = tiled(each)
    assert found
    for one in found:
        assert "size(x) >= " in one.text
        applied = stand.applied(one, stand.text)
        assert applied.sound, f"{applied.end}: {applied.detail}\n{one.text}"


def test_an_array_that_may_be_shorter_stays_behind_its_test() -> None:
    each = "if (mask[i * d + k] > 40 && k < n) s += x[k * m + j];"
    assert not tiled(each, x=("n * m",))[1]
    each = "if (mask[i * d + k] > 40) s += x[(k + mask[i * d + k] - 41) * m + j];"
    assert not tiled(each)[1]
