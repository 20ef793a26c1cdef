"""Attention by a thread a query, and its kin, by tiles of queries and keys."""

from __future__ import annotations

import pytest

from optiml_magic.proposers.rewrites.weighted_rows import WeightedRows
from tests.ideas import asked
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of

FIRST = "what an extreme is where a first element is NaN"

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


#: A block for each query, with its scores in shared memory.
BLOCK = """\
#define D 32
#pragma optiml launch attention grid(n) block(128) shared(n * sizeof(float))
__global__ void attention(const float* Q, const float* K, const float* V, float* O, int n) {
    extern __shared__ float s[];
    __shared__ float red[128];
    int q = blockIdx.x, t = threadIdx.x;
    float m = -INFINITY;
    for (int k = t; k < n; k += 128) {
        float dot = 0.0f;
        for (int d = 0; d < D; d++) dot += Q[q * D + d] * K[k * D + d];
        s[k] = dot * 0.125f;
        m = fmaxf(m, s[k]);
    }
    red[t] = m;
    __syncthreads();
    for (int h = 64; h > 0; h /= 2) {
        if (t < h) red[t] = fmaxf(red[t], red[t + h]);
        __syncthreads();
    }
    m = red[0];
    __syncthreads();
    float l = 0.0f;
    for (int k = t; k < n; k += 128) { s[k] = expf(s[k] - m); l += s[k]; }
    red[t] = l;
    __syncthreads();
    for (int h = 64; h > 0; h /= 2) {
        if (t < h) red[t] += red[t + h];
        __syncthreads();
    }
    l = red[0];
    __syncthreads();
    for (int d = t; d < D; d += 128) {
        float acc = 0.0f;
        for (int k = 0; k < n; k++) acc += s[k] * V[k * D + d];
        O[q * D + d] = acc / l;
    }
}
"""
#: As in llama2.c: the maximum takes the first element of each thread by itself.
LLAMA = BLOCK.replace(
    "    float m = -INFINITY;\n    for (int k = t; k < n; k += 128) {\n        float dot",
    "    for (int k = t; k < n; k += 128) {\n        float dot",
).replace(
    "        m = fmaxf(m, s[k]);\n    }",
    "    }\n    __syncthreads();\n    float m = t < n ? s[t] : 0.0f;\n"
    "    for (int k = t + 128; k < n; k += 128) if (s[k] > m) m = s[k];",
)

#: A thread for each query, in three passes, that adds up in memory.
PASSES = """\
#define D 32
#pragma optiml launch attention grid(cdiv(n, 128)) block(128)
__global__ void attention(const float* Q, const float* K, const float* V, float* O, int n) {
    int q = blockIdx.x * blockDim.x + threadIdx.x;
    if (q >= n) return;
    float m = -INFINITY;
    for (int k = 0; k < n; k++) {
        float s = 0.0f;
        for (int d = 0; d < D; d++) s += Q[q * D + d] * K[k * D + d];
        m = fmaxf(m, s * 0.125f);
    }
    float l = 0.0f;
    for (int k = 0; k < n; k++) {
        float s = 0.0f;
        for (int d = 0; d < D; d++) s += Q[q * D + d] * K[k * D + d];
        l += expf(s * 0.125f - m);
    }
    for (int d = 0; d < D; d++) O[q * D + d] = 0.0f;
    for (int k = 0; k < n; k++) {
        float s = 0.0f;
        for (int d = 0; d < D; d++) s += Q[q * D + d] * K[k * D + d];
        float p = expf(s * 0.125f - m) / l;
        for (int d = 0; d < D; d++) O[q * D + d] += p * V[k * D + d];
    }
}
"""
#: A thread for each element of the result.
EACH = """\
#define D 32
#pragma optiml launch attention grid(cdiv(D, 32), n) block(32)
__global__ void attention(const float* Q, const float* K, const float* V, float* O, int n) {
    int e = blockIdx.x * blockDim.x + threadIdx.x, q = blockIdx.y;
    if (e >= D) return;
    float m = -INFINITY;
    for (int k = 0; k < n; k++) {
        float s = 0.0f;
        for (int d = 0; d < D; d++) s += Q[q * D + d] * K[k * D + d];
        m = fmaxf(m, s);
    }
    float l = 0.0f, acc = 0.0f;
    for (int k = 0; k < n; k++) {
        float s = 0.0f;
        for (int d = 0; d < D; d++) s += Q[q * D + d] * K[k * D + d];
        float p = expf(s - m);
        l += p;
        acc += p * V[k * D + e];
    }
    O[q * D + e] = acc / l;
}
"""
#: A block for a tile of queries, with a thread for each, and keys by tiles in shared memory.
FLASH = """\
#define D 32
#define B 32
#pragma optiml launch attention grid(cdiv(n, B)) block(B)
__global__ void attention(const float* Q, const float* K, const float* V, float* O, int n) {
    __shared__ float ks[B][D], vs[B][D];
    int q = blockIdx.x * B + threadIdx.x;
    float acc[D], own[D], m = -1e30f, l = 0.0f;
    for (int d = 0; d < D; d++) { acc[d] = 0.0f; own[d] = q < n ? Q[q * D + d] : 0.0f; }
    for (int k0 = 0; k0 < n; k0 += B) {
        for (int i = threadIdx.x; i < B * D; i += B) {
            int r = i / D, c = i % D;
            ks[r][c] = k0 + r < n ? K[(k0 + r) * D + c] : 0.0f;
            vs[r][c] = k0 + r < n ? V[(k0 + r) * D + c] : 0.0f;
        }
        __syncthreads();
        for (int j = 0; j < B && k0 + j < n; j++) {
            float s = 0.0f;
            for (int d = 0; d < D; d++) s += own[d] * ks[j][d];
            float top = fmaxf(m, s), c = expf(m - top), p = expf(s - top);
            l = l * c + p;
            for (int d = 0; d < D; d++) acc[d] = acc[d] * c + p * vs[j][d];
            m = top;
        }
        __syncthreads();
    }
    if (q < n) for (int d = 0; d < D; d++) O[q * D + d] = acc[d] / l;
}
"""
#: The same, of which each thread goes through all scores for its own element.
THREADS = """\
#define D 32
#pragma optiml launch attention grid(n) block(D) shared(n * sizeof(float))
__global__ void attention(const float* Q, const float* K, const float* V, float* O, int n) {
    extern __shared__ float s[];
    int q = blockIdx.x, t = threadIdx.x;
    for (int k = t; k < n; k += blockDim.x) {
        float dot = 0.0f;
        for (int d = 0; d < D; d++) dot += Q[q * D + d] * K[k * D + d];
        s[k] = dot * 0.125f;
    }
    __syncthreads();
    float m = -INFINITY, l = 0.0f, acc = 0.0f;
    for (int k = 0; k < n; k++) m = fmaxf(m, s[k]);
    for (int k = 0; k < n; k++) {
        float p = expf(s[k] - m);
        l += p;
        acc += p * V[k * D + t];
    }
    O[q * D + t] = acc / l;
}
"""
PROGRAMS = {"block": BLOCK, "threads": THREADS, "llama": LLAMA, "passes": PASSES, "each": EACH, "flash": FLASH}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_attention_however_it_is_written_is_taken_by_tiles(name: str) -> None:
    before = PROGRAMS[name]
    (idea, parts), refused = asked(WeightedRows(), before)
    assert not refused
    assert isinstance(parts.make(), str)
    after = idea.make()
    assert isinstance(after, str)
    assert "key_tile" in after
    arrays = {n: Array("f4", ("n * 32",)) for n in "QKV"}
    arrays["O"] = Array("f4", ("n * 32",), "zeros")
    assert end_of(before, after, arrays, {"n": 45}, {"n": 3}, rounds=True) == "same"
    assert (FIRST in idea.arithmetic) == (name == "llama")


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("block", {"m = fmaxf(m, s[k])": "if (k % 2) m = fmaxf(m, s[k])"}),
        ("block", {"acc += s[k]": "acc += s[n - 1 - k]"}),
        ("block", {"float l = 0.0f": "float l = 1.0f"}),
        ("block", {"O[q * D + d] = acc / l;": "O[q * D + d] = acc / l + s[d % n];"}),
        ("block", {"O[q * D + d] = acc / l;": "O[q * D + d] = acc;"}),
        ("threads", {"acc += p * V": "acc += s[k] * V"}),
        ("threads", {"l += p;": "l += t < 5 ? p : 1.0f;"}),
        ("threads", {"O[q * D + t] = acc / l;": "O[q * D + t] = acc / l + s[t % n];"}),
        ("llama", {"if (s[k] > m)": "if (k % 2 && s[k] > m)"}),
        ("llama", {"k < n; k += 128) if": "k <= n; k += 128) if"}),
        ("passes", {"expf(s * 0.125f - m) / l": "expf(s * 0.25f - m) / l"}),
        ("passes", {"O[q * D + d] = 0.0f": "O[q * D + d] = 1.0f"}),
        ("passes", {"O[q * D + d] = 0.0f": "if (d) O[q * D + d] = 0.0f"}),
        ("each", {"float l = 0.0f, acc = 0.0f": "float l = 0.0f, acc = 0.5f"}),
        ("each", {"expf(s - m);\n        l": "expf(s - 2.0f * m);\n        l"}),
        ("each", {"acc += p * V[k * D + e];": "acc += p * V[k * D + e]; if (e == 3) break;"}),
    ],
)
def test_what_looks_like_attention_is_not_taken_for_it(name: str, changes: dict[str, str]) -> None:
    text = PROGRAMS[name]
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    ideas, _ = asked(WeightedRows(), text)
    assert len(ideas) < 1 or name in ("passes", "each")
    arrays = {n: Array("f4", ("n * 32",)) for n in "QKV"}
    arrays["O"] = Array("f4", ("n * 32",), "zeros")
    for after in (idea.make() for idea in ideas[:1]):  # that takes but one pass by tiles
        assert isinstance(after, str)
        assert end_of(text, after, arrays, {"n": 45}, {"n": 3}, rounds=True) == "same"
