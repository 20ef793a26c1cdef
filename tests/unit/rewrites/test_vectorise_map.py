"""Maps as vectors: what is offered with which numbers, and for what nothing is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.kernels.primitives.base import kernels
from optiml_magic.model.facts import LaunchFacts
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

MAP = """
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, const float* b, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = a[i];
}"""


@pytest.mark.parametrize(("value", "items"), [("a[i]", [2, 4, 2]), ("a[i] * b[i]", [1, 2, 1])])
def test_so_many_vectors_that_enough_bytes_are_under_way(value, items, propose, compiles):
    found = propose("vectorise_map", MAP.replace("a[i];", f"{value};"))
    values = [parse_program(p.text).values for p in found]
    assert [v["ITEMS"] for v in values] == items
    assert [v["BLOCK"] for v in values] == [256, 256, 128]
    compiles(found[0].text)


def test_the_second_kernel_has_names_of_its_own(propose):
    text = propose("vectorise_map", MAP)[0].text + MAP.replace("launch k", "launch l").replace(
        "void k", "void l"
    )
    found = [p for p in propose("vectorise_map", text) if "ITEMS_2" in p.text]
    assert parse_program(found[0].text).values == {
        "ITEMS": 2, "BLOCK": 256, "ITEMS_2": 2, "BLOCK_2": 256,
    }  # fmt: skip


def test_fields_of_an_item_are_taken_alone_or_with_their_neighbours(propose):
    found = propose("vectorise_map", MAP.replace("o[i] = a[i];", "{ o[2 * i] = a[i]; o[2 * i + 1] = b[i]; }"))  # fmt: skip
    assert {"float4*>(&o" in p.text for p in found} == {True, False}
    assert all("float2*>(&o" in p.text or "float4*>(&o" in p.text for p in found)


@pytest.mark.parametrize(
    "text",
    [
        MAP.replace("o[i] = a[i]", "o[i] = a[i] + a[i + 1]"),
        MAP.replace("o[i] = a[i]", "o[n - 1 - i] += o[i]"),
        MAP.replace("o[i] = a[i]", "for (int j = 0; j < 9; ++j) o[i * 9 + j] = a[j]"),
        MAP.replace("float", "float4"),
    ],
)
def test_refused(text, propose):
    assert propose("vectorise_map", text) == []


QUOTIENT = """
#pragma optiml launch k grid(cdiv(n, 128)) block(128)
__global__ void k(const float* a, const float* b, float* o, int n, int s) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    o[i] = a[i] + b[0] * (i / s);
}"""


@pytest.mark.parametrize(("s", "stepped"), [(2, False), (3, False), (7, True), (8, True)])
def test_rows_shorter_than_a_vector_are_taken_apart_as_before(s, stepped):
    (kernel,) = kernels(parse_program(QUOTIENT), None)
    facts = LaunchFacts("k", 1, (99, 1, 1), (128, 1, 1), {}, {"n": 128 * 99, "s": s})
    rule = VectoriseMap()
    (site,) = rule.sites(rule.shaped(replace(kernel, facts=facts)))
    made = site.apply()
    assert ("i_row" in made.program.text) is stepped
    assert ("s >= 4" in made.program.text) is (s == 7)


@pytest.mark.parametrize(("alone", "prior"), [(2, 0.7), (8, 0.21), (7, 0.7)])
def test_a_map_with_many_loads_that_no_vector_brings_is_less_likely(alone, prior):
    text = MAP.replace("a[i]", "a[i] + " + " + ".join(f"b[n - {k}]" for k in range(alone)))
    (kernel,) = kernels(parse_program(text), None)
    facts = LaunchFacts("k", 1, (2**20, 1, 1), (128, 1, 1), {}, {"n": 2**27})
    rule = VectoriseMap()
    sites = rule.sites(rule.shaped(replace(kernel, facts=facts)))
    assert {site.prior for site in sites if isinstance(site, Site)} == {prior}


BOX = """\
#pragma optiml launch k grid(cdiv(bw, 32), cdiv(bh, 4)) block(32, 4)
__global__ void k(const float* a, float* o, int w, int h, int x0, int y0, int bw, int bh) {
    int bx = blockIdx.x * blockDim.x + threadIdx.x, by = blockIdx.y * blockDim.y + threadIdx.y;
    if (bx >= bw || by >= bh) return;
    int x = bx + x0, y = by + y0;
    if (x >= w || y >= h) return;
    o[y * w + x] = a[y * w + x] * 2.0f;
}
"""


@pytest.mark.parametrize(
    ("sizes", "found"),
    [
        ({"w": 96, "h": 12, "x0": 32, "y0": 2, "bw": 64, "bh": 10}, True),
        ({"w": 96, "h": 12, "x0": 36, "y0": 4, "bw": 64, "bh": 10}, True),
        ({"w": 96, "h": 12, "x0": 64, "y0": 2, "bw": 64, "bh": 10}, False),  # half of its items
    ],
)
def test_a_box_may_reach_beyond_its_image(sizes: dict[str, int], found: bool) -> None:
    arrays = {"a": Array("f4", ("w * h",)), "o": Array("f4", ("w * h",), "zeros")}
    others = {"w": 70, "h": 9, "x0": 29, "y0": 3, "bw": 50, "bh": 8}
    stand = Stand(Made("k", BOX, arrays, sizes, others, exact=True))
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    ideas = [
        one for one in VectoriseMap().propose(parse_program(stand.text), view)
        if isinstance(one, Idea)
    ]  # fmt: skip
    assert bool(ideas) == found
    for idea in ideas:
        text = idea.make()
        assert isinstance(text, str)
        assert stand.applied(Offer("vectorise_map", "", text, rounds=False), stand.text).sound
