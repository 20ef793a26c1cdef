"""Sums over ranges that grow, which begin anew in each round, and what only looks like one."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.grown import grown
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, unchanged, written

LINE = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* a, const int* c, float* out, int n, int m) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    if (t >= n) return;
    const float* row = a + t * m;
    %s
}
"""
PLANE = """\
#pragma optiml launch k grid(cdiv(w, 16), cdiv(h, 8)) block(16, 8)
__global__ void k(const float* a, float* out, int w, int h, int most) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= w || y >= h) return;
    float sum = 0.0f;
    int count = 0, q = 0;
    %s
    out[y * w + x] = sum + 100 * count + 10000 * q;
}
"""
ROWS = {
    "a": Array("f4", ("n", "m")), "c": Array("i4", ("n", "m")), "out": Array("f4", ("n", "m"), "zeros"),
}  # fmt: skip
IMAGE = {"a": Array("f4", ("h", "w")), "out": Array("f4", ("h", "w"), "zeros")}
INSIDE = "if (y + i >= 0 && y + i < h && x + j >= 0 && x + j < w)"


def result(text: str) -> Kernel | Refused:
    return grown(kernel_of(text))


OUT = "out[t * m + k] = s; }"


# Each is left with a sum that begins before the loop, and no loop over all of a range anew.
@pytest.mark.parametrize(
    ("body", "made"),
    [
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += row[i]; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < k; i++) s += row[i]; " + OUT, "if (k > 0)"),
        ("for (int k = 0; k < m; k++) { float s = 1; for (int i = 0; k >= i; ++i) s *= row[i]; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k += 1) { float s = -INFINITY; for (int i = k; i >= 0; i--) s = fmaxf(s, row[i]); " + OUT, "const int i = k;"),
        ("for (int k = m - 1; k >= 0; k--) { float s = 0; for (int i = k; i < m; i++) s += row[i]; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k += 2) { float s = 0; for (int i = 0; i <= k; i++) s += row[i]; " + OUT, "for (int i = k - 1; i < k + 1; ++i)"),
        ("float s = 0; for (int k = 0; k < m; k++) { s = 0; for (int i = 0; i <= k; i++) s += row[i]; " + OUT, "const int i = k;"),
        ("float s = 7; for (int k = 0; k < m; k++) { s = 0; for (int i = 0; i <= k; i++) s += row[i]; out[t * m + k] = s; } out[t * m] = s;", "s = s_kept;"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += row[i]; s /= k + 1; " + OUT, "float s = s_kept;"),
        ("for (int k = 0; k < m; k++) { float s = 0, d = 3; for (int i = 0; i <= k; i++) s += row[i]; s += d; " + OUT, "float d = 3;"),
        ("for (int k = 0; k < m; k++) { float s = 0; int b = 0; for (int i = 0; i <= k; i++) { s += row[i]; b++; } s /= b; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { float s = 0; int b = 0; for (int i = 0; i <= k; i++) { if (row[i] < 0) continue; s += row[i]; b += 1; } s += b; " + OUT, "for (int i = k; i < k + 1; ++i)"),
        ("for (int k = 0; k < m; k++) { float s = 0, s2 = 0; for (int i = 0; i <= k; i++) { const float v = row[i]; s += v; s2 += v * v; } out[t * m + k] = s2 - s; }", "const int i = k;"),
        ("for (int k = 0; k < m; k++) { int s = 0; for (int i = 0; i <= k; i++) if (row[i] > 0.5f) s++; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { int s = 0; for (int i = 0; i <= k; i++) s ^= c[t * m + i]; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { bool s = true; for (int i = 0; i <= k; i++) s = s && row[i] > -1; " + OUT, "const int i = k;"),
        ("for (int k = 1; k <= m; k++) { float s = 0; for (int j = 0; j < k; j++) s += row[j] * row[j]; out[t * m + k - 1] = s; }", "const int j = k - 1;"),
        ("int at = t % m; for (int k = 0; k < m; k++) { float s = 0; for (int i = at - k; i <= at + k; i++) if (i >= 0 && i < m) s += row[i]; " + OUT, "const int i = at + k;"),
        ("int at = t % m; for (int k = 0; k < m; k++) { float s = 0; for (int i = max(0, at - k); i <= min(m - 1, at + k); i++) s += row[i]; " + OUT, "i < max(0, at + 1 - k)"),
        ("int at = t % m; for (int k = 1; k < m; k++) { const int lo = min(at, 0); float s = 0; for (int i = lo; i <= k; i++) s += row[i]; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { int hi = min(m, k + 3); float s = 0; for (int i = 0; i < hi; i++) s += row[i]; " + OUT, "min(m, k + 2)"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < 2 * k / 3; i++) s += row[i]; " + OUT, "for (int i = ((k * 2 - 2) / 3);"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = t % 4; i <= k; i++) s += row[i]; " + OUT, "max("),
        ("for (long long k = 0; k < m; k++) { float s = 0; for (long long i = 0; i < (long long)k + 1; i++) s += row[i]; " + OUT, "const long long i = k;"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (long long i = 0; i < min((long long)(k + 1), (long long)m); i++) s += row[i]; " + OUT, "min((long long)k, (long long)m)"),
        ("int k = 0; while (k < m) { float s = 0; for (int i = 0; i <= k; i++) s += row[i]; out[t * m + k] = s; k++; }", "const int i = k;"),
        ("int k = 0; float s = 0; while (s < 2.5f && k < m) { k++; s = 0; for (int i = 0; i < k; i++) s += row[i]; } out[t * m] = s + 100 * k;", "const int i = k - 1;"),
        ("int k = c[t * m] & 1; float s = 0; while (s < 2.5f && k < m) { k++; s = 0; for (int i = 0; i < k; i++) s += row[i]; } out[t * m] = s + 100 * k;", "const int k_first = k;"),
        ("int base = t % 3, k = base; base += 1; float s = 0; while (k < m) { k++; s = 0; for (int i = base - 2; i < k + base - base; i++) s += i; out[t * m + k - 1] = s; }", "const int k_first = k;"),
        ("int k = 0; float s = 3; do { s = 0; for (int i = 0; i <= k; i++) s += row[i]; k++; } while (s < 2.5f && k < m); out[t * m] = s + 100 * k;", "const int i = k;"),
        ("for (int b = 0; b < m; b++) { float most = -9; for (int k = b; k < m; k++) { float s = 0; for (int i = b; i <= k; i++) s += row[i]; most = fmaxf(most, s); } out[t * m + b] = most; }", "const int i = k;"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int d = 0; d < 3; d++) for (int i = 0; i <= k; i++) s += row[i] * d; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) for (int d = 0; d < m; d++) s += row[d] * (i - d); " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) for (int j = i; j <= k; j++) s += row[i] * row[j]; " + OUT, "if (i < k)"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) for (int j = 0; j < i; j++) s += row[i] * row[j]; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { float s = 0, p = 1; for (int i = 0; i <= k; i++) s += row[i]; for (int i = 0; i <= k; i++) p *= row[i]; s += p; " + OUT, "float p = 1;"),
        ("for (int k = 0; k < m; k++) { if (row[k] < 0) break; float s = 0; for (int i = 0; i <= k; i++) s += row[i]; " + OUT, "const int i = k;"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += row[i]; if (s > 3) continue; if (s < -3) break; " + OUT, "const int i = k;"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("content", ["numbers", "odd"])
def test_a_range_in_one_direction_grows(body: str, made: str, content: str) -> None:
    if content == "odd":  # in another order a NaN may have other bits
        body = body.replace("= s; }", "= s == s ? s : 77; }")
    after = written(result(LINE % body))
    assert made in after, after
    arrays = {**ROWS, "a": Array("f4", ("n", "m"), content)}
    sizes = {"n": 70, "m": 9}, {"n": 33, "m": 1}
    assert end_of(LINE % body, after, arrays, *sizes, rounds=True) == "same"


WHILE = "while (sum < 4.0f && q < most) { q++; sum = 0; count = 0; %s }"
BOX = "for (int i = -q; i <= q; i++) for (int j = -q; j <= q; j++)"
ADD = "{ sum += a[(y + i) * w + x + j]; count++; }"


@pytest.mark.parametrize(
    ("body", "made"),
    [
        (WHILE % f"{BOX} {INSIDE} {ADD}", "if (q > 1 && i >= 1 - q && i < q)"),
        (WHILE % f"for (int i = q; i >= -q; i--) for (int j = q; j >= -q; --j) {INSIDE} {ADD}", "if (q > 1 && i >= 1 - q && i < q)"),
        (WHILE % f"\n#pragma unroll 2\nfor (int i = -q; i <= q; i++) {{\n#pragma unroll 4\nfor (int j = -q; j <= q; j++) {INSIDE} {ADD} }}", "#pragma unroll 4\n"),
        (WHILE % "for (int i = -q; i <= q; i++) { int v = y + i; if (v < 0 || v >= h) continue; for (int j = -q; j <= q; j++) { int u = x + j; if (u < 0 || u >= w) continue; sum += a[v * w + u]; count++; } }", "for (int j = -q; j < 1 - q; ++j)"),
        (WHILE % "for (int i = -q; i <= q; i++) { const float* row = a + min(max(y + i, 0), h - 1) * w; for (int j = -q; j <= q; j++) sum += row[min(max(x + j, 0), w - 1)]; }", "const int j = -q;"),
        (WHILE % "for (int v = max(0, y - q); v <= min(h - 1, y + q); v++) for (int u = max(0, x - q); u <= min(w - 1, x + q); u++) { sum += a[v * w + u]; count++; }", "v < min(h - 1, q + y - 1) + 1"),
        (WHILE % "int top = max(0, y - q), left = max(0, x - q), low = min(h, y + q + 1), right = min(w, x + q + 1); for (int v = top; v < low; v++) for (int u = left; u < right; u++) { sum += a[v * w + u]; count++; }", "u < max(0, x + 1 - q)"),
        ("for (q = 0; q <= most; q++) { sum = 0; count = 0; " + f"{BOX} {INSIDE} {ADD}" + " if (sum > 4) break; }", "if (i >= 1 - q && i < q)"),
        ("do { sum = 0; count = 0; " + f"{BOX} {INSIDE} {ADD}" + " ++q; } while (sum < 4 && q < most);", "if (i >= 1 - q && i < q)"),
        ("for (int r = 1; r <= most; r += 2) { float s = 0; int n = 0; for (int i = -r; i <= r; i++) for (int j = -r; j <= r; j++) " + f"{INSIDE} {{ s += a[(y + i) * w + x + j]; n++; }} s /= n; if (s > sum) {{ sum = s; q = r; }} }}", "for (int j = -r; j < 2 - r; ++j)"),
        ("for (int r = 1; r <= most; r++) { float s = -9; for (int i = 0; i < r; i++) for (int j = 0; j < w; j++) { if (y + i < h) s = fmaxf(s, a[(y + i) * w + j]); } sum += s; q = r; }", "const int i = r - 1;"),
        ("for (int r = 1; r <= most; r++) { float s = 0; for (int i = -2 * r; i < 2 * r; i++) for (int j = -1; j <= r; j++) " + f"{INSIDE} s += a[(y + i) * w + x + j]; sum = fmaxf(sum, s); q = r; }}", "i >= 2 - r * 2 && i < r * 2 - 2"),
        ("for (int r = 0; r < most; r++) { float s = 0; for (int p = 0; p <= r; p++) for (int i = -r; i <= r; i++) for (int j = -r; j <= r; j++) " + f"{INSIDE} s += p * a[(y + i) * w + x + j]; sum += s; q = r; }}", "if (p < r && i >= 1 - r && i < r)"),
        ("for (int r = 0; r < most; r++) { float s = 0; for (int i = -r; i <= r; i++) { for (int j = -r; j < 0; j++) " + f"{INSIDE} s += a[(y + i) * w + x + j]; for (int j = 1; j <= r; j++) {INSIDE} s -= a[(y + i) * w + x + j]; }} sum += s; q = r; }}", "s -= a[(y + i) * w + x + j];"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("content", ["numbers", "odd"])
def test_a_box_grows(body: str, made: str, content: str) -> None:
    text = PLANE % body
    if content == "odd":
        text = text.replace("= sum + 100", "= (sum == sum ? sum : 77) + 100")
    after = written(result(text))
    assert made in after, after
    arrays = {**IMAGE, "a": Array("f4", ("h", "w"), content)}
    sizes = {"w": 19, "h": 11, "most": 5}, {"w": 7, "h": 3, "most": 0}
    assert end_of(text, after, arrays, *sizes, rounds=True) == "same"


SUM = "for (int i = 0; i <= k; i++) s += row[i]; "


@pytest.mark.parametrize(
    ("body", "why"),
    [
        # What is summed, or where, is another in each round.
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += row[i] * k; " + OUT, "what is summed depends on `k`"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += row[k - i]; " + OUT, "what is summed depends on `k`"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) if (row[i] < row[k]) s += 1; " + OUT, "what is summed depends on `k`"),
        ("for (int k = 0; k < m; k++) { float s = 0; const float v = row[k]; for (int i = 0; i <= k; i++) s += row[i] * v; " + OUT, "what is summed depends on `v`"),
        ("float f = 1; for (int k = 0; k < m; k++) { float s = 0; f *= 2; for (int i = 0; i <= k; i++) s += row[i] * f; " + OUT, "what is summed depends on `f`"),
        ("for (int k = 0; k < m; k++) { float s = 0; const int b = k & 1; for (int i = 0; i <= k; i++) s += row[i] + b; " + OUT, "what is summed depends on `k`"),
        ("const float* p = row; for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < k; i++) s += p[i]; p = row + 1; " + OUT, "what is summed depends on `p`"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int d = 0; d < k; d++) for (int i = 0; i <= d * k; i++) s += 1; " + OUT, "how the ends of a loop move is not known"),
        # The range shrinks, moves along or jumps.
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = k; i < m; i++) s += row[i]; " + OUT, "a range does not hold the one before"),
        ("for (int k = 0; k < m - 2; k++) { float s = 0; for (int i = k; i < k + 3; i++) s += row[i]; " + OUT, "a range does not hold the one before"),
        ("for (int k = m - 1; k >= 0; k--) { float s = 0; " + SUM + OUT, "a range does not hold the one before"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < m - k; i++) s += row[i]; " + OUT, "a range does not hold the one before"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < c[t * m + k] % m; i++) s += row[i]; " + OUT, "how the ends of a loop move is not known"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < (k * 5) % m; i++) s += row[i]; " + OUT, "how the ends of a loop move is not known"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < k * t; i++) s += 1; " + OUT, "how the ends of a loop move is not known"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = -k; i <= k - 2 * k; i++) s += 1; " + OUT, "how the ends of a loop move is not known"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i += 2) s += row[i]; " + OUT, "a loop does not make all rounds of a range"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { if (row[i] < -1) break; s += row[i]; } " + OUT, "a loop does not make all rounds of a range"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { s += row[i]; if (row[i] < -1) i++; } " + OUT, "a loop does not count in its head alone"),
        ("for (int k = 0; k < m; k++) { float s = 0; int lo = k; if (c[t * m + k] < 0) lo = 0; for (int i = 0; i <= lo; i++) s += row[i]; " + OUT, "`lo` does not move once a round"),
        ("for (int k = 0; k < m; k++) { float s = 0; const signed char hi = k * 40; for (int i = 0; i <= hi; i++) s += 1; " + OUT, "how the ends of a loop move is not known"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= (signed char)(k * 40); i++) s += 1; " + OUT, "how the ends of a loop move is not known"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < k + threadIdx.x; i++) s += 1; " + OUT, "an end of a loop may be unsigned"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < k * 0.5f; i++) s += 1; " + OUT, "a loop does not count in its head alone"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i < sqrtf(k); i++) s += 1; " + OUT, "a loop does not count in its head alone"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0, j = 2; i <= k; i++) s += row[i] * j; " + OUT, "a loop does not count in its head alone"),
        ("unsigned e = 3; for (int k = 0; k < m; k++) { float s = 0; for (int i = -k; i < e; i++) s += 1; " + OUT, "a loop does not make all rounds of a range"),
        ("for (int k = 0; k < m; k++) { if (k > t) break; float s = row[t]; for (int i = 0; i <= k; i++) s += row[i]; " + OUT, "`s` does not begin with the same in each round"),
        ("for (int k = 0; k < m; k++) { float s = 0, d = s + 1; for (int i = 0; i <= k; i++) s += row[i]; s += d; " + OUT, "`s` is not begun anew right before the loops"),
        ("int b = 1; for (int k = b; k < m; k++) { float s = 0; for (int i = -k; i <= k; i++) { int b = i; s += b; } " + OUT, "what the counter begins with shares its name with another local"),
        # The counter moves in another way.
        ("for (int k = 1; k < m; k *= 2) { float s = 0; for (int i = 0; i < k; i++) s += row[i]; " + OUT, "how far `k` moves is not known"),
        ("for (int k = 0; k < m; k += 1 + (t & 1)) { float s = 0; " + SUM + OUT, "how far `k` moves is not known"),
        ("for (int k = 0; k < m; k++) { float s = 0; " + SUM + "if (s > 1) k++; " + OUT, "`k` does not move once a round"),
        ("int k = 0; while (k < m) { float s = 0; " + SUM + "if (s > 1) { k += 2; continue; } out[t * m + k] = s; k++; }", "`k` does not move once a round"),
        ("int k = 0, j = 0; while (k < m && j < 99) { j++; float s = 0; " + SUM + "out[t * m + k] = s; if (j & 1) continue; k++; }", "`k` may stay in a round"),
        ("int k = 0; while (k < m) { float s = 0; " + SUM + "out[t * m + k] = s; if (s < 99) k++; else k = m; }", "`k` does not move once a round"),
        ("int k = -1; while (k++ < m - 1) { float s = 0; " + SUM + OUT, "`k` does not move once a round"),
        ("for (unsigned k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += row[i]; " + OUT, "`k` may wrap around"),
        ("for (short k = 0; k < m; k++) { float s = 0; " + SUM + OUT, "`k` may wrap around"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (unsigned i = 0; i <= k; i++) s += row[i]; " + OUT, "where a loop ends is not followed"),
        ("int k = 0; int& r = k; for (; k < m; k++) { float s = 0; " + SUM + OUT, "`k` has more than one name"),
        # A round may leave out a part.
        ("for (int k = 0; k < m; k++) { if (row[k] < 0) continue; float s = 0; " + SUM + OUT, "a round may end before it sums up"),
        ("float s = 0; for (int k = 0; k < m; k++) { s = 0; if (row[k] < 0) break; " + SUM + "out[t * m + k] = s; } out[t * m] = s;", "a round may end before it sums up"),
        # What is kept is no sum, or not of the range alone.
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s = s * 0.5f + row[i]; " + OUT, "`s` is not only combined"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { s += row[i]; if (s > 2) s = 2; } " + OUT, "`s` is not only combined"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { s += row[i]; s *= 2; } " + OUT, "`s` is not only combined"),
        ("for (int k = 0; k < m; k++) { float s = 0, p = 0; for (int i = 0; i <= k; i++) { s += row[i]; p += s; } out[t * m + k] = p; }", "`s` is not only combined"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s = row[i]; " + OUT, "`s` is not only combined"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) if (!(row[i] <= s)) s = row[i]; " + OUT, "the order decides what `s` becomes"),
        ("for (int k = 0; k < m; k++) { float s = -9; int b = 0; for (int i = 0; i <= k; i++) if (row[i] > s) { s = row[i]; b = i; } out[t * m + k] = b; }", "the order decides what `s` becomes"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { s += 1; for (int d = 0; d <= k; d++) s += row[d]; } " + OUT, "`s` changes outside of what grows"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int d = 0; d <= k; d++) { float q = 0; for (int i = 0; i <= k; i++) { q += row[i]; s += q; } } " + OUT, "`q` goes from round to round"),
        ("for (int k = 0; k < m; k++) { float s = k; " + SUM + OUT, "`s` does not begin with the same in each round"),
        ("for (int k = 0; k < m; k++) { float s = row[k]; " + SUM + OUT, "`s` does not begin with the same in each round"),
        ("float s = 0; for (int k = 0; k < m; k++) { " + SUM + OUT, "`s` is not begun anew right before the loops"),
        ("float s = 0; for (int k = 0; k < m; k++) { if (k != 3) s = 0; " + SUM + OUT, "`s` is not begun anew right before the loops"),
        ("for (int k = 0; k < m; k++) { float s = 0; s += row[k]; " + SUM + OUT, "`s` is not begun anew right before the loops"),
        ("float s; float* p = &s; for (int k = 0; k < m; k++) { s = 0; " + SUM + "out[t * m + k] = *p; }", "`s` has more than one name"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { float k = 1; s += row[i] * k; } " + OUT, "`k` is the name of several locals"),
        # Something is written on the way.
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += out[t * m + i]; " + OUT, "`out` is written as well"),
        ("float b[4] = {}; for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += b[i & 3]; b[k & 3] = row[k]; " + OUT, "`b` is written as well"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { s += row[i]; out[t * m + i] = s; } }", "`s` is not only combined"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { s += row[i]; out[t * m + k] = 1; } " + OUT, "what is summed depends on `k`"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) { s += row[i]; if (row[i] > 1) return; } " + OUT, "a loop does not make all rounds of a range"),
        ("for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += row[i] + clock(); " + OUT, "what `clock` does is not known"),
        ("for (int k = 0; k < m; k++) { float s = 0; " + SUM + "__syncthreads(); " + OUT, "its threads wait for each other"),
    ],
)  # fmt: skip
def test_what_only_looks_like_it_stays(body: str, why: str) -> None:
    assert refused(result(LINE % body)).startswith(why)


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("const float* a", "const volatile float* a", "what is summed depends on `row`"),
        ("#pragma", "__device__ float gain;\n#pragma", "what is summed depends on `gain`"),
        ("const float* a", "float* a", ""),
        ("#pragma", "__constant__ float gain;\n#pragma", "what is summed depends on `gain`"),
        ("#pragma", "const float gain = 3;\n#pragma", ""),
        ("#pragma", "#define gain 2\n#pragma", ""),
        ("#pragma", "#pragma optiml tune gain in {1, 2} = 2\n#pragma", ""),
        ("#pragma", "__device__ float twice(float v) { return 2 * v; }\n#define gain twice(2)\n#pragma", ""),
    ],
)  # fmt: skip
def test_what_may_change_from_outside(before: str, after: str, why: str) -> None:
    text = LINE.replace(
        "const float* row",
        "const volatile float* row" * ("volatile" in after) or "const float* row",
    )
    factor = " * gain" * ("gain" in after)
    body = "for (int k = 0; k < m; k++) { float s = 0; for (int i = 0; i <= k; i++) s += row[i]%s; "
    text = (text % (body % factor + OUT)).replace(before, after, 1)
    made = result(text)
    if why:
        assert refused(made).startswith(why)
    else:
        assert unchanged(text, written(made), ROWS, {"n": 70, "m": 9}, {"n": 33, "m": 1}) == "same"
