"""Items of as many fields as the kernel is given, such as the channels of a pixel."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

PLANE = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const TYPE* a, TYPE* o, int w, int h, COUNT ch) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    BODY
}
"""
EACH = "for (int c = 0; c < ch; c++) o[(y * w + x) * ch + c] = a[(y * w + x) * ch + c] * 3 + c;"
GATHER = (
    "int u = (x * 7 + y * 3) % w, v = (y * 5 + x) % h; for (int c = 0; c < ch; ++c) "
    "o[(y * w + x) * ch + c] = a[(v * w + u) * ch + c] + a[(y * w + u) * ch + c] * 2;"
)
MOVES = (
    "const TYPE* p = a + (y * w + x) * ch; TYPE* q = o + (y * w + x) * ch; "
    "for (int c = 0; c < ch; c++) q[c] = p[ch - 1 - c];"
)


def ideas_of(
    body: str, kind: str = "float", count: str = "int", ch: int = 3, **sizes: int
) -> tuple[Stand, list[Idea]]:
    dtype = {"float": "f4", "unsigned char": "u1", "short": "i2"}[kind]
    text = PLANE.replace("BODY", body).replace("TYPE", kind).replace("COUNT", count)
    arrays = {"a": Array(dtype, ("h", "w", "ch")), "o": Array(dtype, ("h", "w", "ch"), "zeros")}
    own = {"w": 80, "h": 24, "ch": ch} | sizes
    stand = Stand(Made("k", text, arrays, own, {**own, "w": 37, "h": 5, "ch": ch % 4 + 1}))
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    found = [*VectoriseMap().propose(parse_program(stand.text), view)]
    return stand, [one for one in found if isinstance(one, Idea)]


@pytest.mark.parametrize("body", [EACH, GATHER, MOVES, EACH.replace("+ c]", "+ (c + 1) % ch]")])
@pytest.mark.parametrize(
    ("kind", "count"),
    [("float", "int"), ("float", "const unsigned"), ("unsigned char", "int"), ("short", "int")],
)
@pytest.mark.parametrize("ch", [2, 3, 4])
def test_they_are_a_number(body: str, kind: str, count: str, ch: int) -> None:
    stand, ideas = ideas_of(body, kind, count, ch)
    assert ideas
    text = ideas[0].make()
    assert isinstance(text, str)
    assert f"ch == {ch}" in text
    found = stand.applied(Offer("vectorise_map", "", text), stand.text)
    assert found.sound, f"{found.end}: {found.detail}"


@pytest.mark.parametrize(
    "body",
    [
        EACH.replace("o[(y * w + x) * ch", "o[(x * h + y) * ch"),  # the next thread is far away
        "ch = ch > 2 ? 2 : ch; " + EACH,
        EACH.replace("3 + c;", "3 + o[((y * w + x) * ch + c + 5) % (w * h)];"),  # another's
    ],
)
def test_others_stay(body: str) -> None:
    assert not [i for i in ideas_of(body)[1] if "where ch" in i.title]


def test_many_fields_stay() -> None:
    assert not ideas_of(EACH, ch=16)[1]
