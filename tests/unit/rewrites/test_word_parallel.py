"""The rule for packed symbols: what it offers, and what kernels become of it."""

from __future__ import annotations

from optiml_magic.kernels.primitives.base import Refused
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.proposers.rewrites.word_parallel import WordParallel
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, written

TANIMOTO = """\
#pragma optiml launch tanimoto grid(cdiv(n, 64)) block(64)
__global__ void tanimoto(const unsigned long long* prints, const unsigned long long* query,
                         float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int both = 0, either = 0;
    for (int bit = 0; bit < 1024; bit++) {
        int a = (prints[i * 16 + bit / 64] >> (bit % 64)) & 1;
        int b = (query[bit / 64] >> (bit % 64)) & 1;
        if (a && b) both++;
        if (a || b) either++;
    }
    out[i] = either > 0 ? (float)both / either : 0.0f;
}
"""
PREFIX = """\
__device__ int base(const unsigned int* text, int at) {
    return (text[at / 16] >> (2 * (at % 16))) & 3;
}
#pragma optiml launch lcp grid(cdiv(n, 64)) block(64)
__global__ void lcp(const unsigned int* text, const int* from, const int* to, int* out, int n,
                    int length) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int run = 0;
    while (from[i] + run < length && to[i] + run < length && from[i] >= 0 && to[i] >= 0 &&
           base(text, from[i] + run) == base(text, to[i] + run)) run++;
    int odd = 0;
    for (int j = 0; j < length; j++) odd ^= base(text, j) == 1;
    out[i] = run * 2 + odd;
}
"""


def sites(text: str) -> list[Site | Refused]:
    return [*WordParallel().sites(kernel_of(text))]


def test_similar_fingerprints_are_counted_by_words() -> None:
    (site,) = sites(TANIMOTO)
    assert isinstance(site, Site)
    after = written(site.apply())
    assert after.count("__popcll") == 2
    assert "for (int bit = 0; bit < 1024; bit += 64)" in after
    arrays = {
        "prints": Array("u8", ("n", "16"), "bits"), "query": Array("u8", ("16",), "bits"),
        "out": Array("f4", ("n",), "zeros"),
    }  # fmt: skip
    assert end_of(TANIMOTO, after, arrays, {"n": 70}, {"n": 5}) == "same"


def test_all_loops_of_a_kernel_go_by_words_at_once() -> None:
    (site,) = sites(PREFIX)
    assert isinstance(site, Site)
    after = written(site.apply())
    assert "__ffs" in after
    assert "__popc" in after
    arrays = {
        "text": Array("u4", ("cdiv(length, 16)",), "few bits"),
        "from": Array("i4", ("n",), "below length"), "to": Array("i4", ("n",), "below length"),
        "out": Array("i4", ("n",), "zeros"),
    }  # fmt: skip
    sizes = {"n": 70, "length": 333}, {"n": 9, "length": 48}
    assert end_of(PREFIX, after, arrays, *sizes) == "same"


def test_what_one_loop_refuses_does_not_keep_another() -> None:
    text = PREFIX.replace("odd ^= base(text, j) == 1", "odd = max(odd, base(text, j) * j)")
    refusal, site = sites(text)
    assert isinstance(refusal, Refused)
    assert "more than to ask" in refusal.reason
    assert isinstance(site, Site)


def test_symbols_of_whole_bytes_and_others_are_left_alone() -> None:
    text = TANIMOTO.replace("bit / 64] >> (bit % 64)) & 1", "bit / 64] >> (bit % 32)) & 1")
    assert sites(text) == []
