"""Kernels that count in `size_t`, or without a sign, as ones that count in `int`."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, Refused, kernels
from optiml_magic.kernels.primitives.in_ints import in_ints
from optiml_magic.source.program import parse_program
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array, Made

from .alike import end_of, refused, written

HEAD = """\
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
HELPER
__global__ void k(const float* a, const int* c, float* out, PARAMETERS) {
    BODY
}
"""
ARRAYS = {
    "a": Array("f4", ("n",)),
    "c": Array("i4", ("n",), "below n"),
    "out": Array("f4", ("n",), "zeros"),
}
SIZES, SMALL = {"n": 101, "w": 7}, {"n": 2, "w": 1}
PLACE = "size_t i = blockIdx.x * blockDim.x + threadIdx.x; if (i >= n) return; "


def text_of(body: str, parameters: str = "size_t n, size_t w", helper: str = "") -> str:
    text = HEAD.replace("PARAMETERS", parameters).replace("HELPER\n", helper and f"{helper}\n")
    return text.replace("BODY", body)


def made(text: str, sizes: dict[str, int] = SIZES) -> Kernel | Refused:
    """What becomes of the only kernel of a text at these sizes."""
    stand = Stand(Made("one", text, dict(ARRAYS), dict(sizes), dict(SMALL), {}, exact=True))
    (kernel,) = kernels(parse_program(text), stand.facts(text))
    return in_ints(kernel)


def same(text: str, *wide: str) -> str:
    """The text of what does the same at all sizes, in which no types are left but ``wide``."""
    after = written(made(text))
    assert end_of(text, after, ARRAYS, SIZES, SMALL) == "same"
    body = "\n".join(line for line in after.splitlines() if not line.startswith("#pragma"))
    for one in ("size_t", "long", "unsigned", "auto"):
        assert (one in body) == (one in wide), after
    return after


WINDOWS = [
    # A window whose places wrap around below zero, as people write the test that turns them away.
    (
        "float s = 0; for (size_t j = 0; j < w; ++j) { size_t p = i + j - w / 2; "
        "if (p < n) s += a[p]; } out[i] = s;"
    ),
    (
        "float s = 0; for (size_t j = 0; j < w; ++j) { size_t p = i + j - (w - 1) / 2; "
        "if (p >= n) continue; s += a[p]; } out[i] = s;"
    ),
    (
        "float s = 0; for (size_t j = 0; j < w; ++j) { size_t p = i + j - w / 2; "
        "if (n > p) s += a[p]; else s -= 1; } out[i] = s;"
    ),
    (
        "float s = 0; for (size_t j = 0; j < w; ++j) { size_t p = i + j - w / 2; "
        "if (n <= p) s -= 2; else s += a[p]; } out[i] = s;"
    ),
    (
        "float s = 0; for (size_t j = 0; j < w; ++j) { size_t p = i + j - w / 2; "
        "s += p <= n - 1 ? a[p] : 3.0f; } out[i] = s;"
    ),
    (
        "float s = 0; for (size_t j = 0; j < w; ++j) { size_t p = i + j - w / 2; "
        "if (p > n - 1 || a[p] < 0) continue; s += a[p]; } out[i] = s;"
    ),
    (
        "float s = 0; for (size_t j = 0; j < w; ++j) if (i + j - w / 2 < n) s += a[i + j - w / 2]; "
        "out[i] = s;"
    ),
    # With a sign, and with tests of both ends.
    (
        "long long half = (w - 1) / 2; float s = 0; for (long long j = -half; j <= half; ++j) { "
        "long long p = (long long)i + j; s += p >= 0 && p < (long long)n ? a[p] : 0; } out[i] = s;"
    ),
    (
        "int half = w / 2; float s = 0; for (int j = -half; j <= half; ++j) { int p = (int)i + j; "
        "if (p >= 0 && p < n) s += a[p]; } out[i] = s;"
    ),
    (
        "int half = w / 2; float s = 0; for (int j = -half; j <= half; ++j) { int p = (int)i + j; "
        "if (p < 0 || p >= n) continue; s += a[(size_t)p]; } out[i] = s;"
    ),
    # An int against a size: one below zero is far beyond.
    (
        "int r = w / 2; float s = 0; for (int j = 0; j < w; ++j) { int p = i + j - r; "
        "if (p < n) s += a[p]; } out[i] = s;"
    ),
    "int r = w / 2, p = (int)i - r; out[i] = p < n ? 1.0f : 2.0f;",
    "int r = w / 2, p = (int)i - r; out[i] = (p >= n) + 2 * (p > n) + 4 * (n < p) + 8 * (n > p);",
    "int p = (int)i - (int)w; out[i] = (p == n - w - 1) + 2 * (i - w != n - 2 * w);",
    # Other loops, and other uses.
    "float s = 0; for (size_t j = i; j < n; j += w) s += a[j]; out[i] = s;",
    "float s = 0; for (size_t j = 0; j < w && i + j < n; j++) s += a[i + j]; out[i] = s;",
    (
        "size_t low = i < w ? 0 : i - w, high = min(i + w, n); float s = 0; "
        "for (size_t j = low; j < high; ++j) s += a[j]; out[i] = s / w;"
    ),
    (
        "size_t low = i >= w ? i - w : 0, high = i + w < n ? i + w : n; float s = 0; "
        "for (size_t j = low; high > j; ++j) s += a[j]; out[i] = s;"
    ),
    "out[i] = a[n - 1 - i] + (float)i * w + i / w + i % w;",
    "const float* p = a + i; out[i] = *p + p[w / 2 - w / 2];",
    "float v = i; v += w; v *= i; out[i] = v;",
    "out[i] = !i + (i && w) + (i == 3ull ? 1 : 0);",
    (
        "const size_t four = 4; float own[4]; for (size_t j = 0; j < four; ++j) own[j] = i + j; "
        "out[i] = own[i % four];"
    ),
    "auto q = i / w; auto r = i + q * w; out[i] = q + r;",
    "uint64_t q = i; int64_t r = q; out[i] = static_cast<size_t>(r) + 1ul;",
]


@pytest.mark.parametrize("body", WINDOWS)
def test_sizes_become_ints(body: str) -> None:
    after = same(text_of(PLACE + body))
    assert "const int* c, float* out, int n, int w)" in after


@pytest.mark.parametrize("body", WINDOWS)
@pytest.mark.parametrize("kind", ["unsigned int", "uint32_t"])
def test_words_without_a_sign(body: str, kind: str) -> None:
    text = text_of(PLACE + body, f"const {kind} n, {kind} w").replace("size_t", kind)
    after = made(text)
    if isinstance(after, Kernel):
        assert end_of(text, written(after), ARRAYS, SIZES, SMALL) == "same"
    else:
        assert not body.startswith("float s = 0; for (size_t j = 0"), after


@pytest.mark.parametrize("body", [b for b in WINDOWS if "p >= 0 &&" in b or "p < 0 ||" in b])
def test_words_with_a_sign(body: str) -> None:
    text = text_of(PLACE + body, "int64_t n, const long w").replace("size_t", "long long")
    after = written(made(text))
    assert "long" not in after
    assert end_of(text, after, ARRAYS, SIZES, SMALL) == "same"


def test_what_is_asked_of_the_sizes() -> None:
    after = same(text_of(PLACE + WINDOWS[1]))
    assert "require w - 1 >= 0" in after
    assert "require 31 + n + w <= 2147483647" in after


def test_an_unsigned_place_beside_sizes() -> None:
    body = "unsigned x = blockIdx.x * 32u + threadIdx.x; if (x < n) out[x] = a[x] + (x > w);"
    same(text_of(body))


def test_functions_that_take_a_size() -> None:
    helper = "__device__ float at(const float* a, size_t p, size_t n) { return p < n ? a[p] : 0; }"
    text = text_of(PLACE + "out[i] = at(a, i - w, n);", helper=helper)
    assert "at(a, (size_t)(i - w), (size_t)n)" in same(text, "size_t")


@pytest.mark.parametrize(
    "body",
    [
        "out[i] = i - w;",
        "out[i] = (float)(i - w);",
        "float v = 1; v += i - w; out[i] = v;",
        "out[i] = 2.0f * (i - w) + (i > w ? i - w : 5.0f);",
        "size_t low = i > w ? i - w : 0, high = min(i + w, n); out[i] = a[i] / (high - low);",
    ],
)
def test_what_becomes_a_float_has_no_sign(body: str) -> None:
    assert "(size_t)(" in same(text_of(PLACE + body), "size_t")


def test_a_sum_that_stays_wide() -> None:
    body = "size_t s = 0; for (size_t j = 0; j < w; ++j) { s += j * i; } out[i] = s;"
    assert "size_t s = 0" in same(text_of(PLACE + body), "size_t")


def test_a_hash_beside_sizes() -> None:
    body = "unsigned h = c[i]; h ^= h << 7; h *= 2654435761u; out[i] = h >> 20;"
    assert "unsigned h" in same(text_of(PLACE + body), "unsigned")


def test_a_macro() -> None:
    helper = "#define AT(r, c, w) ((r) * (w) + (c))"
    body = "float s = 0; for (size_t j = 0; j < w; ++j) if (AT(i, j, w) < n) s += a[AT(i, j, w)]; "
    same(text_of(PLACE + body + "out[i] = s;", helper=helper))


@pytest.mark.parametrize(
    ("body", "why"),
    [
        # What wraps around is another number.
        ("out[i] = (i - w) / 2;", "not known to hold"),
        ("out[i] = (i - w) % 5;", "not known to hold"),
        ("out[i] = c[i] < n ? 1 : 2;", "another number the next time"),
        ("out[i] = i - w < i - 2 * w;", "may wrap around"),
        ("out[i] = max(i - w, i) > n;", "may depend on a type"),
        ("size_t p = (unsigned)i - (unsigned)w; out[i] = p < n;", "may be negative"),
        ("long long p = threadIdx.x - 40u; out[i] = p < (long long)n;", ""),
        ("out[i] = a[(threadIdx.x - 0u + (unsigned)i - (unsigned)w) % n];", ""),
        ("long long p = a[i] * 4e9f; if (p >= 0 && (int)p < n) out[i] = 1;", ""),
        ("float f = a[i] - 1e10f * w; if (f >= 0 && (int)f < n) out[i] = 1;", ""),
        # A number below zero beside one without a sign is far beyond.
        ("out[i] = i - w <= 5 - (int)i;", "may wrap around"),
        ("for (int j = 0; j < n - 2 * i; ++j) out[i] += 1;", ""),
        ("int q = 3 - (int)i; out[i] = a[(q > w ? q - w : 0) % n];", ""),
        # An int does not hold it.
        ("size_t big = i * 4000000000ull; out[i] = big / 4000000000ull > w;", ""),
        ("out[i] = n * n * n * n * n > w;", "not known"),
        ("out[i] = (size_t)c[i] * n * 100000000 > w;", "not known"),
        # Bits, functions and types.
        ("out[i] = i << 3;", "more than to count"),
        ("out[i] = (i & w) + (i ^ 5);", "more than to count"),
        ("out[i] = ~i > w;", "more than to count"),
        ("out[i] = sizeof(n) + i;", "the type of a size"),
        ("out[i] = sizeof(i + w);", "the type of a size"),
        ("static_assert(sizeof(i) == 8); out[i] = i;", "the type of a size"),
        ("out[i] = abs((long long)i);", "may depend on a type"),
        ("decltype(n) q = 1; out[i] = sizeof(q);", "type"),
        ('if (i == 0) printf("%lu", n); out[i] = 1;', "may depend on a type"),
        ("size_t* p = &n; *p = 4; out[i] = n;", ""),
        ("auto f = [&](int q) { return n + q; }; out[i] = f(1);", ""),
        ("int v = 3; v += n; out[i] = v;", "more than to count"),
        ("n = 3; out[i] = n;", ""),
    ],
)  # fmt: skip
def test_what_may_be_another_number(body: str, why: str) -> None:
    found = made(text_of(PLACE + body, helper="#include <cstdio>"))
    if not why and isinstance(found, Kernel):
        after = written(found)
        assert (
            end_of(text_of(PLACE + body, helper="#include <cstdio>"), after, ARRAYS, SIZES, SMALL)
            == "same"
        )
    else:
        assert why in refused(found)
