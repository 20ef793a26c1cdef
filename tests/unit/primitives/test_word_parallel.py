"""Loops over packed symbols that go by words, and those that nearly do."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.word_parallel import in_words
from tests.rewriting.writing import Array

from .alike import kernel_of, refused, unchanged, written

TEXT = """\
constexpr int kLetters = 8;
__device__ unsigned int letter(const unsigned int* text, int at) {{
    return (text[at / kLetters] >> (4 * (at % kLetters))) & 15;
}}
__device__ int base(const unsigned int* text, int at) {{
    return (text[at / 16] >> (2 * (at % 16))) & 3;
}}
__device__ unsigned int bit(const unsigned int* words, int at) {{
    const unsigned int word = words[at >> 5];
    return (word >> (at & 31)) & 1u;
}}
__device__ bool alike(const unsigned int* a, const unsigned int* b, int at) {{
    return base(a, at) == base(b, at);
}}
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const {0}* a, const {0}* b, int* out, int n, int m, int p, int q) {{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const {0}* x = a + i * 6;
    const {0}* y = b + i * 6;
    int d = 0, e = 0;
    {1}
    out[i] = d + 1000 * e;
}}
"""
SIZES = (
    {"n": 40, "m": 80, "p": 0, "q": 0}, {"n": 33, "m": 61, "p": 16, "q": 3},
    {"n": 33, "m": 59, "p": 5, "q": 31}, {"n": 5, "m": 1, "p": 15, "q": 2},
    {"n": 3, "m": 0, "p": 1, "q": 2}, {"n": 9, "m": 96, "p": 0, "q": 0},
)  # fmt: skip
COUNTS = [
    "for (int j = 0; j < m; j++) { if (base(x, j) != base(y, j)) d++; }",
    "for (int j = 0; j < m; j++) d += base(x, p + j) == base(y, q + j);",
    "for (int j = 0; j < 64; ++j) d += alike(x, y, j);",
    "int j = 0; while (j < m) { if (!alike(x, y, j + p)) ++d; ++j; } e = j;",
    "for (int j = p; j < m; j++) { int s = base(x, j); if (s == 1 || s == 2) d++; else e++; }",
    "for (int j = 0; j <= m - 1; j++) d += base(x, j) == base(y, j + q) ? 5 : -4;",
    "for (int j = 0; j < m; j++) { d += base(x, j); e += base(x, j) & base(y, j); }",
    "for (int j = 0; j < m; j++) { if (base(x, j) == 3) continue; d += 2 * (base(y, j) != 0); }",
    "for (int j = 0; j < m; j++) d += (a[i * 6 + j / 16] >> j % 16 * 2 & 3) != 0;",
    "for (unsigned j = 0; j < m; j++) d -= (x[j >> 4] >> ((j & 15u) << 1) & 3u) == 2u;",
    "for (int j = 0; j < m; j++) d += (x[j / 16] >> (30 - 2 * (j % 16)) & 3) == (y[j / 16] >> (2 * (15 - j % 16)) & 3);",
    "for (int j = 0; j < m; j++) d += (x[(j + q) / 16] >> (30 - 2 * ((j + q) % 16)) & 3) == 1;",
    "for (int j = 0; j < m; j++) d += (x[j >> 4] >> (2 * j & 31)) & 3;",
    "for (int j = 0; j < m / 4; j++) d += letter(x, j) == letter(y, j + 3);",
    "const int each = 16; for (int j = 0; j < m; j++) d += (x[j / each] >> (2 * (j % each)) & 3) == 2;",
]
BITS = [
    "for (int j = 0; j < m; j++) if (bit(x, j) && bit(y, j)) d++;",
    "for (int j = 0; j < m; j++) { d += bit(x, j) & bit(y, j); e += bit(x, j) | bit(y, j); }",
    "for (int j = 0; j < m; j++) { d += bit(x, j + p) ^ bit(y, j + q); }",
    "for (int j = 0; j < m; j++) { d ^= (x[j / 32] >> (j % 32)) & (y[j / 32] >> (j % 32)) & 1; }",
    "for (int j = 0; j < m; j++) if (x[j / 32] & (1u << (j % 32))) d++;",
    "for (int j = 0; j < m; j++) if ((x[j / 32] & (1u << (j & 31))) != 0) { if (bit(y, j)) d += p; else e++; }",
    "for (int j = 0; j < 192; j++) { d += bit(x, j); e += bit(y, j); }",
    "for (int j = 0; j < m; j++) d += (int)bit(x, j) - (int)bit(y, j);",
    "for (int j = 0; j < m; j++) d += (__ldg(&x[j >> 5]) >> (j & 31) & 1) == 0;",
    "for (int j = 0; j < m; j++) { bool s = bit(x, j), t = bit(y, j); d += s != t; e += !s && t; }",
]
ALONE = [
    "for (int w = 0; w < 6; w++) { unsigned int v = x[w] ^ y[w]; for (int j = 0; j < 32; j++) if (v >> j & 1) d++; }",
    "for (int w = 0; w < 6; w++) for (int j = 0; j < 16; j++) d += (x[w] >> 2 * j & 3) != (y[w] >> 2 * j & 3);",
    "for (int w = 0; w < 6; w++) for (int j = 3; j < 13; j++) d += (x[w] >> (30 - 2 * j) & 3) == 1;",
    "for (int j = 2; j < 31; j++) if (x[2] & (1u << j)) d += bit(y, j);",
    "for (int w = 0; w < 6; w++) { int j = 0; while (j < 16 && (x[w] >> (2 * j) & 3) == (y[w] >> (2 * j) & 3)) j++; d += j; }",
]
SEARCHES = [
    "while (d < m && base(x, p + d) == base(y, q + d)) d++;",
    "for (d = 0; d < m; d++) { if (base(x, d) != base(y, d)) break; }",
    "for (int j = 0; j < m; j++) { if (!alike(x, y, j + p)) { d = j; e = 1; break; } }",
    "for (int j = 0; j < m; j++) { int s = base(x, j + p), t = base(y, j + q); if (s != t) { d = s - t; e = j; break; } }",
    "while (p + d < m && q + d < m && base(x, p + d) == base(y, q + d)) { d += 1; }",
    "while (d < m) { if (base(x, d) == 0 && base(y, d + p) == 0) d = d + 1; else break; }",
    "while (true) { if (d >= m || base(x, d) != base(y, d)) break; d++; }",
    "for (int s = -2; s <= 2; s++) { int r = 0; while (r < m && r + p + s >= 0 && r + p + s < m && base(x, r) == base(y, r + p + s)) r++; if (r > d) d = r; }",
    "d = p; while (d < 20 && d + q < 33 && base(x, d) == base(y, d + q)) d++;",
    "d = 5 * p; while (d < 40 && base(x, d) == base(y, d)) d++;",
    "for (d = q; d < 60 && base(x, d) == base(y, d); d++) ;",
    "d = 1; while (d + 2 < m && 2 + d + p < m && base(x, d + 2) == base(y, 2 + d + p)) d++;",
    "d = 3; while (d - 2 < 70 && d < m && base(x, d - 2) == base(y, d)) ++d;",
    "while (d < m && (x[d / 16] >> (30 - 2 * (d % 16)) & 3) == (y[(d + q) / 16] >> (30 - 2 * ((d + q) % 16)) & 3)) d++;",
]
FINDS = [
    "while (d < m && !bit(x, d)) d++;",
    "while (d < m && bit(x, d + p) == bit(y, d + q)) d++;",
    "for (; d < m; d++) if (bit(x, d) && bit(y, d)) break;",
    "while (d <= m - 1 && (x[d / 32] & (1u << (d % 32))) == 0) d++;",
    "d = p; while (d < m) { if (x[d >> 5] & (1u << (d & 31))) break; d++; }",
    "d = q; while (d < 170 && bit(x, d) == bit(y, d)) d++;",
    "d = q; while (d < 190 && d + 2 < m + 99 && bit(x, d) == (y[(d + 2) >> 5] >> ((d + 2) & 31) & 1)) ++d;",
]
LONG = [
    "for (int j = 0; j < m; j++) d += (x[j / 64] & ~y[j / 64]) >> (j % 64) & 1;",
    "for (int j = 0; j < m; j++) if ((x[j >> 6] ^ y[j >> 6]) & (1ull << (j & 63))) d++; else e++;",
    "for (int j = 0; j < m; j++) d += (x[j / 64] >> (j % 64) & 1) & (y[j / 64] >> (j % 64) & 1);",
    "for (long long j = 0; j < m; j++) if ((x[(j + p) >> 6] >> ((j + p) & 63)) & 1ull) d++;",
    "while (d < m && (x[(d + p) / 32] >> (2 * ((d + p) % 32)) & 3) == (y[d / 32] >> (2 * (d % 32)) & 3)) d++;",
    "for (int j = 0; j < m; j++) d += (x[(j + q) / 16] >> (4 * ((j + q) % 16)) & 15) != (y[j / 16] >> (4 * (j % 16)) & 15);",
    "while (d < m && (x[(d + p) / 64] >> (63 - (d + p) % 64) & 1) == 0) d++;",
]


SHORT = [
    "for (int j = 0; j < m / 4; j++) d += x[j / 8] >> (j % 8) & 1;",
    "for (int j = 0; j < 40; j++) if (!(x[j >> 3] & (1 << (j & 7)))) d++;",
    "for (int j = 0; j < m / 8; j++) d += (x[(j + 5) / 8] >> (7 - (j + 5) % 8) & 1) != (y[(j + 2) / 8] >> (7 - (j + 2) % 8) & 1);",
    "while (d < m / 8 && (x[d / 4] >> (6 - 2 * (d % 4)) & 3) == (y[(d + 1) / 4] >> (6 - 2 * ((d + 1) % 4)) & 3)) d++;",
    "while (d < m / 8 && (x[(d + 3) / 4] >> (2 * ((d + 3) % 4)) & 3) == (y[d / 4] >> (2 * (d % 4)) & 3)) d++;",
    "for (int j = 0; j < m / 8; j++) { int w = x[(j + 1) / 8]; d += ~w >> (j + 1) % 8 & 1; }",
]


def made(body: str, kind: str = "unsigned int") -> Kernel | Refused:
    return in_words(kernel_of(TEXT.format(kind, body)))


def _tried(body: str, kind: str, dtype: str, content: str) -> None:
    text = TEXT.format(kind, body)
    after = written(in_words(kernel_of(text)))
    assert "__popc" in after or "__ffs" in after or "__clz" in after
    arrays = {
        "a": Array(dtype, ("n", "6"), content), "b": Array(dtype, ("n", "6"), content),
        "out": Array("i4", ("n",), "zeros"),
    }  # fmt: skip
    for one, other in zip(SIZES[::2], SIZES[1::2], strict=True):
        assert unchanged(text, after, arrays, one, other) == "same"


@pytest.mark.parametrize("body", COUNTS)
def test_symbols_are_counted_by_words(body: str) -> None:
    _tried(body, "unsigned int", "u4", "bits")


@pytest.mark.parametrize("body", BITS)
def test_bits_are_counted_by_words(body: str) -> None:
    _tried(body, "unsigned int", "u4", "bits")


@pytest.mark.parametrize("body", ALONE)
def test_a_word_alone_is_one_step(body: str) -> None:
    _tried(body, "unsigned int", "u4", "few bits")


@pytest.mark.parametrize("body", SHORT)
def test_words_may_be_short(body: str) -> None:
    _tried(body, "unsigned char", "u1", "bits")


@pytest.mark.parametrize("body", [*SEARCHES, *FINDS])
def test_the_first_is_found_by_words(body: str) -> None:
    _tried(body, "unsigned int", "u4", "few bits")


@pytest.mark.parametrize("body", LONG)
def test_words_may_be_long(body: str) -> None:
    _tried(body, "unsigned long long", "u8", "few bits")


@pytest.mark.parametrize(
    "body",
    [
        "for (int j = 0; j < m / 2; j++) d += base(x, j + s) == base(y, j);",
        "for (int j = p; j < m - 40; j++) d += base(x, j + s) == 1;",
        "int j; for (j = 2; j < m / 2; ++j) { if (base(y, j + s) == 0) break; } d = j;",
        "d = p; while (d < m / 2 && base(x, d + s) == base(y, d + s)) d++;",
    ],
)
def test_where_a_place_may_be_below_0_is_asked_before(body: str) -> None:
    body = f"int s = (int)(x[5] & 7) - 3; {body}"
    assert "} else {" in written(made(body))
    _tried(body, "unsigned int", "u4", "bits")


def test_a_search_that_only_ends_has_no_mask() -> None:
    after = written(made("while (d < m && d + p < 96 && base(x, d) == base(y, d + p)) d++;"))
    assert "most = min(m, 96 - p)" in after
    assert "min(((d + p) >> 4) + 1, 5)" in after
    assert "& asked" not in after


def test_whole_words_have_no_masks() -> None:
    after = written(made("for (int j = 0; j < 128; j++) d += bit(x, j) & bit(y, j);"))
    assert "for (int j = 0; j < 128; j += 32)" in after
    assert "funnel" not in after
    assert "left" not in after


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for (int j = 0; j < m; j++) { d += base(x, j); out[i] = j; }", "more than to ask"),
        ("for (int j = 0; j < m; j++) { d += bit(x, j); if (d > 5) break; }", "left early"),
        ("for (int j = 0; j < m; j++) { int s = e++; d += bit(x, j); }", "more than to ask"),
        ("for (int j = 0; j < m; j++) d += x[2] >> j & 1;", "no loop asks"),
        ("for (int j = 0; j < 33; j++) d += x[2] >> j & 1;", "no loop asks"),
        ("for (int j = 0; j < m; j++) d += j * base(x, j);", "not followed"),
        ("for (int j = 0; j < m; j++) d += base(x, j) < base(y, j);", "not followed"),
        ("for (int j = 0; j < m; j++) if (bit(x, j)) d = j;", "more than to ask"),
        ("while (base(x, d) == base(y, d)) d++;", "no bound"),
        ("for (int j = 0; j < m; j += 2) d += base(x, j);", "more than to count"),
        ("for (int j = 0; j < m; j++) d += base(x, 2 * j);", "no loop asks"),
        ("for (int j = 0; j < m; j++) d += (x[j / 16] >> (2 * (j % 8))) & 3;", "no loop asks"),
        (
            "for (int j = 0; j < m; j++) d += (x[j / 16] >> (2 * ((j + 1) % 16))) & 3;",
            "no loop asks",
        ),
        ("for (int j = 0; j < m; j++) d += (x[j / 16] >> (j % 16)) & 3;", "no loop asks"),
        ("for (int j = 0; j < m; j++) d += base(x, j) + (int)bit(y, j);", "lie differently"),
        ("for (int j = 0; j < 3; j++) d += base(x, j);", "few rounds"),
        ("for (int j = 0; j < m; j++) d += base(x, out[i] + j);", "below 0"),
        ("while (d < m && bit(x, d) && d < out[i]) d++;", "behind a test"),
    ],
)
def test_others_stay(body: str, why: str) -> None:
    assert why in refused(made(body))
