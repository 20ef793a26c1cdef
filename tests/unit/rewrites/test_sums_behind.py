"""Items that threads take together, where all of them add to one place."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule
from optiml_magic.proposers.rewrites.several_rows import SeveralRows
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from optiml_magic.proposers.rewrites.slide_window import SlideWindow
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

STEP = """\
#pragma optiml zero(sum)
#pragma optiml launch step grid(cdiv(w, 16), cdiv(h, 4), b) block(16, 4)
__global__ void step(const float* a, float* out, TYPE* sum, int w, int h, int b) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= w || y >= h) return;
    int p = (z * h + y) * w + x;
    if (x == 0 || y == 0 || x == w - 1 || y == h - 1) { out[p] = a[p]; return; }
    float v = 0.25f * (a[p - 1] + a[p + 1] + a[p - w] + a[p + w]);
    out[p] = v;
    float d = v - a[p];
    UPDATE
}
"""
WINDOW = """\
#pragma optiml zero(sum)
#pragma optiml launch step grid(cdiv(w, 16), cdiv(h, 4), b) block(16, 4)
__global__ void step(const float* a, float* out, TYPE* sum, int w, int h, int b) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, z = blockIdx.z;
    if (x >= w || y >= h) return;
    if (x < 5 || y < 5 || x >= w - 5 || y >= h - 5) return;
    float d = 0.0f;
    for (int j = -5; j <= 5; j++)
        for (int i = -5; i <= 5; i++) d += a[(z * h + y + j) * w + x + i];
    out[(z * h + y) * w + x] = d;
    UPDATE
}
"""
SIZES = {"w": 96, "h": 37, "b": 2}
OTHERS = {"w": 32, "h": 13, "b": 3}
RULES = {ShareLoads: (STEP, WINDOW), SlideWindow: (WINDOW,), SeveralRows: (STEP,)}


def asked(
    rule: type[KernelRule], text: str, kind: str, count: str
) -> tuple[Stand, list[Idea], list[Refusal]]:
    plane = Array("f4", ("b", "h", "w"))
    made = Made(
        "step", text, {"a": plane, "out": replace(plane, content="zeros"), "sum": Array(kind, (count,), "zeros")}, SIZES, OTHERS, {}, exact=False,
    )  # fmt: skip
    stand = Stand(made)
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    found = [*rule().propose(parse_program(stand.text), view)]
    ideas = [one for one in found if isinstance(one, Idea)]
    return stand, ideas, [one for one in found if isinstance(one, Refusal)]


@pytest.mark.parametrize(
    ("update", "kind", "count"),
    [
        ("atomicAdd(sum, d);", "float", "b"),
        ("atomicAdd(&sum[z], d * d);", "double", "b"),
        ("if (d > 0.1f) atomicAdd(&sum[0], 1);", "int", "b"),
        ("atomicMax(sum, __float_as_int(fabsf(d)));", "int", "b"),
    ],
)
@pytest.mark.parametrize(("rule", "text"), [(r, t) for r, texts in RULES.items() for t in texts])
def test_their_block_adds_once(
    rule: type[KernelRule], text: str, update: str, kind: str, count: str
) -> None:
    dtype = {"float": "f4", "double": "f8", "int": "i4"}[kind]
    whole = text.replace("TYPE", kind).replace("UPDATE", update)
    stand, ideas, refused = asked(rule, whole, dtype, count)
    assert ideas or rule is SeveralRows, refused
    for idea in ideas:
        assert "and add up in a block what they update in sum" in idea.title
        after = idea.make()
        if isinstance(after, Refusal):  # items along z have a place of their own each
            assert "[z]" in update
            assert "z" in idea.key
            assert "one place" in after.reason
            continue
        assert "plane_" in after, after
        found = stand.applied(Offer(rule.name, "", after, rounds=True), stand.text)
        assert found.sound, f"{idea.title}: {found.end}: {found.detail}\n{after}"


@pytest.mark.parametrize(
    "update",
    [
        "out[p] += atomicAdd(sum, 1.0f);",
        "atomicAdd(sum, d); out[p] += sum[1];",
        "atomicExch(sum, d);",
    ],
)
def test_what_is_asked_for_keeps_them_apart(update: str) -> None:
    text = STEP.replace("TYPE", "float").replace("UPDATE", update)
    _, ideas, refused = asked(ShareLoads, text, "f4", "b")
    assert not ideas
    assert any("atomic" in one.reason for one in refused)
