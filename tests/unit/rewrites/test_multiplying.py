"""Windows with a stride and a dilation that the kernel is given."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from optiml_magic.proposers.rewrites.slide_window import SlideWindow
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

POOL = """\
#pragma optiml launch pool grid(cdiv(n, 128)) block(128)
__global__ void pool(const float* a, float* o, int n, int k, int s, int p, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float m = -INFINITY;
    for (int j = 0; j < k; j++) {
        int at = i * s + j * d - p;
        if (at < 0 || at >= n) continue;
        m = fmaxf(m, a[at]);
    }
    o[i] = m;
}
"""
ARRAYS = {"a": Array("f4", ("n",)), "o": Array("f4", ("n",), "zeros")}


def ideas_of(rule: ShareLoads | SlideWindow, **sizes: int) -> tuple[Stand, list[Idea]]:
    own = {"n": 400, "k": 21, "s": 1, "p": 10, "d": 1} | sizes
    stand = Stand(Made("pool", POOL, ARRAYS, own, {**own, "n": 130}, exact=False))
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    found = [*rule.propose(parse_program(stand.text), view)]
    return stand, [one for one in found if isinstance(one, Idea)]


@pytest.mark.parametrize("rule", [ShareLoads(), SlideWindow()])
def test_they_are_numbers_where_nothing_is_found_otherwise(rule: ShareLoads | SlideWindow) -> None:
    stand, ideas = ideas_of(rule)
    assert ideas
    text = ideas[0].make()
    assert isinstance(text, str)
    assert "s == 1" in text
    assert "d == 1" in text
    found = stand.applied(Offer(rule.name, "", text, rounds=True), stand.text)
    assert found.sound, f"{found.end}: {found.detail}"


def test_large_ones_stay_as_they_are() -> None:
    assert not ideas_of(SlideWindow(), s=16, d=9)[1]


PIXELS = """\
#pragma optiml launch blur grid(cdiv(w, 32), cdiv(h, 8)) block(32, 8)
__global__ void blur(const float* a, float* o, int w, int h, int c) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < 1 || y < 1 || x >= w - 1 || y >= h - 1) return;
    float s = a[(y - 1) * w * c + x * c] + a[(y + 1) * w * c + x * c];
    s += a[y * w * c + x * c] + a[y * w * c + (x - 1) * c] + a[y * w * c + (x + 1) * c];
    o[y * w + x] = s;
}
"""


def test_they_are_numbers_for_what_is_found_with_them_alone() -> None:
    arrays = {"a": Array("f4", ("w * h * c",)), "o": Array("f4", ("w * h",), "zeros")}
    sizes = {"w": 68, "h": 20, "c": 2}
    stand = Stand(Made("blur", PIXELS, arrays, sizes, sizes | {"w": 33}, exact=False))
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    found = [*ShareLoads().propose(parse_program(stand.text), view)]
    texts = {one.title: one.make() for one in found if isinstance(one, Idea)}
    along = {"c == 2" in text for text in texts.values() if isinstance(text, str)}
    assert along == {False, True}
    for text in (text for text in texts.values() if isinstance(text, str)):
        assert stand.applied(Offer("share_loads", "", text, rounds=True), stand.text).sound
