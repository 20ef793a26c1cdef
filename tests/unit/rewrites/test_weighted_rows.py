"""Attention by a thread a query, and its kin, by tiles of queries and keys."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites.weighted_rows import WeightedRows
from tests.ideas import asked

ATTENTION = """\
#define D 32
#pragma optiml launch attention grid(cdiv(n, 128)) block(128)
__global__ void attention(const float* Q, const float* K, const float* V, float* O, int n) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    float acc[D];
    for (int d = 0; d < D; d++) acc[d] = 0.0f;
    float m = -1e30f, l = 0.0f;
    for (int k = 0; k < n; k++) {
        float s = 0.0f;
        for (int d = 0; d < D; d++) s += Q[q * D + d] * K[k * D + d];
        float top = fmaxf(m, s);
        float p = expf(s - top);
        float c = expf(m - top);
        l = l * c + p;
        for (int d = 0; d < D; d++) acc[d] = acc[d] * c + p * V[k * D + d];
        m = top;
    }
    for (int d = 0; d < D; d++) O[q * D + d] = acc[d] / l;
}
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("k < n", "k <= q"),
        ("float s = 0.0f;", "if (k > q) break; float s = 0.0f;"),
        ("float s = 0.0f;", "if (k > q) continue; float s = 0.0f;"),
        ("float s = 0.0f;", "const float *row = K + k * D, *own = Q + q * D; float s = 0.0f;"),
    ],
)
def test_queries_take_keys_by_tiles(old: str, new: str) -> None:
    text = ATTENTION.replace(old, new)
    if "row = K" in new:
        text = text.replace("Q[q * D + d] * K[k * D + d]", "own[d] * row[d]")
    (idea, parts), refused = asked(WeightedRows(), text)
    split = parts.make()
    assert isinstance(split, str)
    assert "acc_parts" in split
    made = idea.make()
    assert isinstance(made, str)
    assert "key_tile" in made
    assert idea.arithmetic == ("the order of additions", "the rounding of products")
    assert not refused


def test_the_first_program_compiles(propose, compiles):
    first, *_ = propose("weighted_rows", ATTENTION)
    compiles(first.text)


def test_heads_may_be_digits_of_the_index() -> None:
    heads = (
        ATTENTION.replace("cdiv(n, 128)", "cdiv(n * h, 128)")
        .replace("int n)", "int n, int h)")
        .replace("int q = blockIdx", "int i = blockIdx")
        .replace(
            "if (q >= n) return;", "if (i >= n * h) return;\n    int q = i % n, b = i / n * n * D;"
        )
    )
    for name in "QKVO":
        heads = heads.replace(f"{name}[", f"{name}[b + ")
    (idea, *_), refused = asked(WeightedRows(), heads)
    assert isinstance(idea.make(), str)
    assert not refused


def test_what_is_no_array_that_grows_is_left_alone() -> None:
    product = ATTENTION.replace("acc[d] = acc[d] * c + p * V[k * D + d]", "l += p * V[k * D + d]")
    assert asked(WeightedRows(), product) == ([], [])
    ideas, (refusal,) = asked(WeightedRows(), ATTENTION.replace("acc[d] * c", "acc[d] * acc[d]"))
    assert not ideas
    assert "factor" in refusal.reason
