"""Several rounds of a loop under way at once."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.abreast import abreast
from tests.present import sampled
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float s = 0.0f;
    for (int k = i % 3; k < i % 11; k += 2) s += a[k] * b[i];
    c[i] = s;
}
"""
SUM = "s += a[k] * b[i];"


def test_rounds_beyond_the_end_are_not_counted() -> None:
    after = written(abreast(kernel_of(TEXT), 0, 4))
    for now in (
        "#pragma optiml tune ROUNDS in {1, 2, 4, 8} = 4\n",
        "    for (int first = i % 3; first < i % 11; first += ROUNDS * 2) {\n",
        "            const int k = ahead < i % 11 ? ahead : first;\n",
        "            const auto part = a[k] * b[i];\n            if (k == ahead) s += part;\n",
    ):
        assert now in after


@pytest.mark.parametrize(
    "text",
    sampled(
        [
            TEXT.replace(SUM, "{ float v = a[k]; s = fmaxf(s, v); s -= v * s; }"),
            TEXT,
            TEXT.replace("k < i % 11; k += 2", "k <= i % 11; ++k"),
            TEXT.replace("k = i % 3; k < i % 11; k += 2", "k = i % 3; k != i % 3 + i % 5; k++"),
            TEXT.replace("int k", "unsigned k").replace(SUM, "{ s += a[k]; s = s * b[k]; }"),
        ],
        3,
    ),
)
def test_it_does_the_same(text: str) -> None:
    after = written(abreast(kernel_of(text), 0, 4))
    arrays = {
        "a": Array("f4", ("n + 12",)),
        "b": Array("f4", ("n + 12",)),
        "c": Array("f4", ("n",)),
    }
    assert end_of(text, after, arrays, {"n": 70}, {"n": 3}, rounds=True) == "same"


@pytest.mark.parametrize(
    "body",
    [
        "{ int p = i + k; p = p >= n ? n - 1 : p; s += a[p]; }",
        "{ int p; p = min(i + k, n - 1); float v = a[p]; v *= v; s += v; }",
    ],
)
def test_a_round_beyond_the_end_has_its_own_locals(body: str) -> None:
    text = TEXT.replace(SUM, body)
    after = written(abreast(kernel_of(text), 0, 8))
    arrays = {name: Array("f4", ("n",)) for name in "abc"}
    assert end_of(text, after, arrays, {"n": 70}, {"n": 33}, rounds=True) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("{ s += a[i]; i = i + 1; }", "its rounds load from where others say, line 6"),
        (
            "{ const float v = *b; s += v; b = b + 1; }",
            "its rounds load from where others say, line 6",
        ),
        ("{ int p = i; s += a[p]; i += k; }", "its rounds load from where others say, line 6"),
        ("{ s += a[k]; if (s > 2.0f) break; }", "the loop has another way out, line 6"),
        ("c[k] = 1.0f;", "its rounds do more than to load, line 6"),
        ("if (a[k] > 0.0f) s += a[k];", "its rounds do more than to load and to combine, line 6"),
        ("{ float v = a[k]; }", "its rounds combine nothing, line 6"),
        ("{ const float& v = a[k]; s += v; }", "its rounds have references or arrays, line 6"),
        ("s += a[k] + (i = 3);", "its rounds do more than to load and to combine, line 6"),
    ],
)
def test_refused(body: str, why: str) -> None:
    assert refused(abreast(kernel_of(TEXT.replace(SUM, body)), 0, 2)) == why


def test_a_loop_that_counts_down() -> None:
    text = TEXT.replace("k = i % 3; k < i % 11; k += 2", "k = i % 11; k > 0; k--")
    why = "the loop does not count up to its end in its head, line 6"
    assert refused(abreast(kernel_of(text), 0, 2)) == why
