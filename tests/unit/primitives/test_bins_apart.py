"""Counts and sums that data choose among, as a local each."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.bins_apart import bins_apart
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#define K 4
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const int* g, const float* a, float* out, int n, int m, int few) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    BODY
}
"""
ARRAYS = {
    "g": Array("i4", ("m", "n"), "below few"),
    "a": Array("f4", ("m", "n")),
    "out": Array("f4", ("n",), "zeros"),
}
ROUNDS = "for (int j = 0; j < m; j++) "
APART = {
    f"int c[3] = {{0}}; {ROUNDS}c[g[j * n + i]]++; out[i] = c[0] + 2 * c[1] - c[2];":
        "c_1 += chosen == 1;",
    f"int c[K] = {{}}; {ROUNDS}{{ int v = g[j * n + i]; if (v < 2) c[v] += 1; }} "
    "for (int b = 0; b < K; ++b) out[i] += b * c[b];": "if (v == 3) c_3 += 1;",
    f"float s[3]; for (int b = 0; b < few; b++) s[b] = 0.5f; {ROUNDS}s[g[j * n + i]] += a[j * n + i];"
    "for (int b = 0; b < few; b++) out[i] = fmaxf(out[i], s[b]);": "if (2 < few) {",
    f"unsigned c[4] = {{1, 2, 3, 4}}; {ROUNDS}c[j & 3]++; int v = g[i]; out[i] = c[v] + c[v + 1];":
        "v == 0 ? c_0 : v == 1 ? c_1 : v == 2 ? c_2 : c_3",
    f"float s[2] = {{0, 0}}; int t[2]; t[0] = 0; t[1] = 1; {ROUNDS}"
    "{ int v = g[j * n + i] & 1; s[v] += a[j * n + i]; t[v]--; } out[i] = s[1] - s[0] + t[0] * t[1];":
        "if (v == 0) t_0--;",
    f"int c[4] = {{}}, q = 0; {ROUNDS}c[++q & 3] += 1 + q * g[i]; "
    "out[i] = c[0] + 3 * c[1] + 7 * c[2] + 17 * c[3];": "if (chosen == 2) c_2 += given;",
    f"int c[3] = {{}}; {ROUNDS}c[g[j * n + i]]++; for (unsigned b = 0; b < 3; b++) "
    "out[i] += c[b] * ((b - 1) / 2 % 7);": "c_0 * ((0u - 1) / 2 % 7)",
    f"int c[3] = {{}}; {ROUNDS}c[g[j * n + i]]++; for (long long b = 0; b < 3; b++) "
    "out[i] += c[b] * (b << 33 >> 32);": "c_2 * (2LL << 33 >> 32)",
}  # fmt: skip
KEPT = {
    f"int c[9] = {{}}; {ROUNDS}c[g[j * n + i]]++; out[i] = c[0];": "no sums",
    "float s[2] = {0, 0}; for (int j = 0; j < m; j++) for (int b = 0; b < 2; b++) "
    "s[b] += a[j * n + i]; out[i] = s[1];": "no sums",
    "float w[3]; for (int j = 0; j < 3; j++) w[j] = a[j * n + i]; out[i] = w[1];": "no sums",
    f"int c[3] = {{}}; {ROUNDS}c[g[j * n + i]]++; int* p = c; out[i] = p[1];": "more is asked",
    f"int c[3] = {{}}; {ROUNDS}c[g[j * n + i]]++; out[i] = c[g[i]];": "an element is asked for",
    f"int c[3] = {{}}; {ROUNDS}c[g[j * n + i]]++; for (int b = 0; b < few; b++) out[i] += c[b];":
        "a loop may go beyond",
    f"int c[3] = {{}}; {ROUNDS}c[g[j * n + i]]++; for (int b = 2; b >= 0; b--) out[i] += c[b];":
        "a loop over them does not",
    f"int c[3] = {{}}; {ROUNDS}c[g[j * n + i]]++; for (int b = 0; b < 3; b++) "
    "{ if (c[b] > 4) break; out[i] += c[b]; }": "a loop over them does",
}  # fmt: skip
SIZES = ({"n": 70, "m": 9, "few": 3}, {"n": 33, "m": 1, "few": 2})


@pytest.mark.parametrize("body", APART)
def test_each_is_a_sum_of_its_own(body: str) -> None:
    text = TEXT.replace("BODY", body)
    after = written(bins_apart(kernel_of(text)))
    assert APART[body] in after
    assert end_of(text, after, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize("body", KEPT)
def test_others_stay_an_array(body: str) -> None:
    assert refused(bins_apart(kernel_of(TEXT.replace("BODY", body)))).startswith(KEPT[body])
