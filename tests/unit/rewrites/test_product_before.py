"""Several results of a product for each thread: tiles of a launch before."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.rewrites.product_before import ProductBefore
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

NEAREST = """\
#pragma optiml launch nearest grid(cdiv(n, 64)) block(64)
__global__ void nearest(const float* p, const float* c, int* label, float* least, int n, int k, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = 1e30f;
    int which = 0;
    for (int j = 0; j < k; j++) {
        float far = 0.0f;
        for (int e = 0; e < d; e++) {
            float t = p[i * d + e] - c[j * d + e];
            far += t * t;
        }
        if (far < best) {
            best = far;
            which = j;
        }
    }
    label[i] = which;
    least[i] = best;
}
"""
GATE = """\
#define SCORES 5
#pragma optiml launch gate grid(cdiv(n, 64)) block(64)
__global__ void gate(const float* p, const float* c, int* label, float* least, int n, int k, int d) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float score[SCORES];
    for (int j = 0; j < SCORES; j++) {
        float s = 0.0f;
        for (int e = 0; e < d; e++) s += p[i * d + e] * c[j * d + e];
        score[j] = s;
    }
    int first = 0;
    for (int j = 1; j < SCORES; j++) if (score[j] > score[first]) first = j;
    float sum = 0.0f;
    for (int j = 0; j < SCORES; j++) sum += expf(score[j] - score[first]);
    label[i] = first;
    least[i] = 1.0f / sum;
}
"""
ARRAYS = {
    "p": Array("f4", ("n", "d")), "c": Array("f4", ("k", "d")), "label": Array("i4", ("n",), "zeros"),
    "least": Array("f4", ("n",), "zeros"),
}  # fmt: skip
SIZES, OTHERS = {"n": 70, "k": 5, "d": 37}, {"n": 33, "k": 5, "d": 16}


def asked(text: str, sizes: dict[str, int] = SIZES) -> tuple[Stand, list[Idea]]:
    """The rule's ideas for a program, of which the sizes are known."""
    stand = Stand(Made("scores", text, ARRAYS, sizes, OTHERS, exact=False))
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    found = [*ProductBefore().propose(parse_program(stand.text), view)]
    return stand, [one for one in found if isinstance(one, Idea)]


@pytest.mark.parametrize("text", [NEAREST, GATE])
def test_scores_are_found_as_tiles_before(text: str) -> None:
    stand, ideas = asked(text)
    assert ideas
    after = ideas[-1].make()
    assert not isinstance(after, Refusal)
    assert "_found[" in after
    assert "__shared__" in after
    assert "the rounding of products" in ideas[-1].arithmetic
    found = stand.applied(Offer("product_before", "", after, rounds=True), stand.text)
    assert found.sound, f"{found.end}: {found.detail}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("float far = 0.0f;", "float far = best;"),  # from round to round
        ("t * t;", "t * t; if (far > best) break;"),  # as many rounds as the best so far says
        ("c[j * d + e]", "c[which * d + e]"),
        ("least[i] = best;", "least[i] = best; label[i] += (int)p[0];"),
        ("const float* p, ", "float* p, "),
    ],
)
def test_what_depends_on_the_rounds_before_stays(old: str, new: str) -> None:
    text = NEAREST.replace(old, new)
    if old.startswith("const"):
        text = text.replace("least[i] = best;", "least[i] = best; p[i * d] = 0.0f;")
    _, ideas = asked(text)
    assert bool(ideas) == (old == "least[i] = best;")


def test_few_rounds_are_made_where_they_are() -> None:
    assert not asked(NEAREST, {"n": 70, "k": 5, "d": 7})[1]


FUSED = """\
#pragma optiml launch k grid(h) block(64) shared((n + w) * sizeof(float))
__global__ void k(const float* a, const float* W, float* o, int h, int n, int w) {
    extern __shared__ float sm[];
    __shared__ float part[64];
    float* x = sm;
    float* y = sm + n;
    int t = threadIdx.x, row = blockIdx.x;
    for (int i = t; i < n; i += 64) x[i] = a[row * n + i];
    __syncthreads();
    float sum = 0.0f;
    for (int j = t; j < w; j += 64) {
        float s = 0.0f;
        for (int i = 0; i < n; i++) s += x[i] * W[j * n + i];
        y[j] = s;
        sum += s;
    }
    part[t] = sum;
    __syncthreads();
    for (int d = 32; d > 0; d /= 2) { if (t < d) part[t] += part[t + d]; __syncthreads(); }
    for (int j = t; j < w; j += 64) o[row * w + j] = y[j] - part[0] / w;
}
"""


def test_a_layer_that_a_block_makes_row_by_row_before_it_normalises_the_row() -> None:
    arrays = {
        "a": Array("f4", ("h", "n")), "W": Array("f4", ("w", "n")),
        "o": Array("f4", ("h", "w"), "zeros"),
    }  # fmt: skip
    sizes, others = {"h": 40, "n": 33, "w": 70}, {"h": 3, "n": 17, "w": 5}
    stand = Stand(Made("fused", FUSED, arrays, sizes, others, exact=False))
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    found = [*ProductBefore().propose(parse_program(stand.text), view)]
    ideas = [one for one in found if isinstance(one, Idea)]
    assert ideas
    text = ideas[-1].make()
    assert isinstance(text, str)
    kernel = text[text.index("void k(") :]
    assert "_found[" in kernel
    assert "y[" not in kernel
    after = stand.applied(Offer("product_before", "", text, rounds=True), stand.text)
    assert after.sound, f"{after.end}: {after.detail}"


STEP = """\
#define SIGMOID(v) (1.0f / (1.0f + expf(-(v))))
#pragma optiml launch step grid(cdiv(w, 32), h) block(32)
__global__ void step(const float* x, const float* s, const float* A, const float* U, const float* b,
                     float* out, float* next, int h, int w, int n) {
    int j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y;
    if (j >= w) return;
    float g = b[j], f = b[w + j];
    for (int k = 0; k < n; k++) {
        float v = x[i * n + k];
        g += v * A[j * n + k];
        f += v * A[(w + j) * n + k];
    }
    for (int k = 0; k < w; k++) {
        g += s[i * w + k] * U[j * w + k];
        f += s[i * w + k] * U[(w + j) * w + k];
    }
    next[i * w + j] = SIGMOID(f) * s[i * w + j] + tanhf(g);
    out[i * w + j] = SIGMOID(g);
}
"""
STEPPED = {
    "x": Array("f4", ("h", "n")), "s": Array("f4", ("h", "w")), "A": Array("f4", ("2", "w", "n")),
    "U": Array("f4", ("2", "w", "w")), "b": Array("f4", ("2", "w")),
    "out": Array("f4", ("h", "w"), "zeros"), "next": Array("f4", ("h", "w"), "zeros"),
}  # fmt: skip


def stepped(text: str) -> tuple[Stand, list[Idea]]:
    sizes, others = {"h": 21, "w": 40, "n": 33}, {"h": 3, "w": 17, "n": 5}
    stand = Stand(Made("step", text, STEPPED, sizes, others, exact=False))
    view = replace(view_of(stand.text), find_facts=lambda: stand.facts(stand.text))
    found = [*ProductBefore().propose(parse_program(stand.text), view)]
    return stand, [one for one in found if isinstance(one, Idea)]


@pytest.mark.parametrize(
    "text",
    [
        STEP,
        STEP.replace("g += s[i * w + k] * U[j * w + k];\n        f +=", "f +="),
        STEP.replace("if (j >= w) return;", "if (j < w) {").replace("SIGMOID(g);", "SIGMOID(g); }"),
    ],
)
def test_one_of_two_products_is_made_before_and_both_in_tiles(text: str) -> None:
    stand, ideas = stepped(text)
    assert "BM_2" in ideas[0].title
    for idea, tiles in zip(ideas, (2, 1), strict=False):
        made = idea.make()
        assert isinstance(made, str)
        assert len(parse_program(made).launches) == 2
        assert made.count("const auto fetch") == tiles
        after = stand.applied(Offer("product_before", "", made, rounds=True), stand.text)
        assert after.sound, f"{after.end}: {after.detail}"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("for (int k = 0; k < w; k++) {", "{\n        int k = j;"),
        ("f += v * A[(w + j) * n + k];", "f += v * A[(w + j) * n + k]; next[i * w + j] = f;"),
    ],
)
def test_one_product_stays_in_its_kernel(old: str, new: str) -> None:
    assert old in STEP
    assert not stepped(STEP.replace(old, new))[1]
