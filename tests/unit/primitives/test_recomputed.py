"""Rows that a thread keeps and can find again, computed where they are asked for."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import Kernel, kernels
from optiml_magic.kernels.primitives.raised import raised, rows_left
from optiml_magic.kernels.primitives.recomputed import found_again, recomputed
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, const float* b, float* o, float* p, int h, int n) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= h) return;
    float y[64];
    float sum = 0.0f, m = 2.0f;
    FIRST
    BETWEEN
    THEN
}
"""
PARTS = {
    "FIRST": "for (int i = 0; i < n; i++) { y[i] = a[row * n + i] * m; sum += y[i]; }",
    "BETWEEN": "float mean = sum / n;",
    "THEN": "for (int i = 0; i < n; i++) o[row * n + i] = (y[i] - mean) * b[i];",
}
ARRAYS = {
    "a": Array("f4", ("h", "n")), "b": Array("f4", ("n",)),
    "o": Array("f4", ("h", "n"), "zeros"), "p": Array("f4", ("h", "n"), "zeros"),
}  # fmt: skip
SIZES, OTHERS = {"h": 40, "n": 23}, {"h": 3, "n": 1}


def text_of(parts: dict[str, str]) -> str:
    text = TEXT
    for name, words in {**PARTS, **parts}.items():
        text = text.replace(name, words)
    return text


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"THEN": "for (int j = n - 1; j >= 0; --j) o[row * n + j] = y[j] - y[n - 1 - j] + mean;"},
        {"BETWEEN": "float mean = sum; for (int i = 0; i < n; i++) y[i] = expf(y[i] - mean) + y[i];"},
        {"BETWEEN": "float mean = sum; for (int i = 0; i < n; i++) { y[i] /= n; p[row * n + i] = y[i]; }"},
        {"FIRST": "for (int i = 0; i < n; i++) { const float v = a[row * n + i], w = v * v; "
                  "y[i] = w - v; sum += w; }"},
        {"FIRST": "for (int i = 0; i < n; i++) y[i] = a[row * n + i] / 3.0;"},
        {"FIRST": "for (int i = 0; i < n; i++) y[i] = 7 / (i + 2);"},
        {"THEN": "for (int t = 0; t < 2; t++) for (int i = 0; i < n; i++) "
                 "o[row * n + i] = y[(i + t) % n] * mean;"},
        {"FIRST": "for (int i = 0; i < n; i++) y[i] = (i - 5) * m;",
         "THEN": "for (unsigned i = 0; i < n; i++) o[row * n + i] = y[i];"},
        {"FIRST": "for (unsigned i = 0; i < n; i++) y[i] = (i - 5) * m;"},
        {"FIRST": "for (int i = 0; i < n; i++) y[i] = i << 28;",
         "THEN": "for (long long i = 0; i < n; i++) o[row * n + i] = y[i];"},
        {"FIRST": "for (int i = 0; i < n; i++) { const int v = a[row * n + i] * 3.7f; y[i] = v; }"},
    ],
)  # fmt: skip
def test_rows_are_found_again(parts: dict[str, str]) -> None:
    before = text_of(parts)
    after = written(recomputed(kernel_of(before)))
    assert "y[" not in after
    assert end_of(before, after, ARRAYS, SIZES, OTHERS, rounds=True) == "same"


def test_what_is_rounded_on_the_way_is_rounded_where_it_is_asked_for() -> None:
    text = text_of({"FIRST": "for (int i = 0; i < n; i++) y[i] = a[row * n + i] / 3.0;"})
    assert "(float)" in written(recomputed(kernel_of(text)))


@pytest.mark.parametrize(
    ("parts", "reason"),
    [
        ({"BETWEEN": "float mean = sum; m = 3.0f;"}, "before it has values"),
        ({"FIRST": "for (int i = 0; i < n; i++) { y[i] = a[row * n + i] * m; m += 1.0f; }"},
         "made of changes"),
        ({"FIRST": "for (int i = 0; i < n; i++) y[i] = o[row * n + i];",
          "BETWEEN": "float mean = 0.0f; o[row * n] = 4.0f;"}, "before it has values"),
        ({"FIRST": "for (int i = 0; i < n; i++) { y[i] = o[row * n + i]; o[row * n] = 1.0f; }"},
         "made of changes"),
        ({"FIRST": "for (int i = 0; i < n; i++) { float s = 0.0f; for (int j = 0; j < n; j++) "
                   "s += a[row * n + j] * b[i]; y[i] = s; }"}, "more than an expression"),
        ({"FIRST": "for (int i = 0; i < n; i++) if (a[row * n + i] > 0) y[i] = a[row * n + i];"},
         "than in a plain loop"),
        ({"FIRST": "for (int i = 0; i < n; i++) { y[i] = a[row * n + i]; y[i] = sum; sum += m; }"},
         "several values"),
        ({"FIRST": "for (int i = 0; i < n; i++) y[i] = i ? y[i - 1] : m;"}, "as it changes"),
        ({"FIRST": "for (int i = 0; i < n; i++) y[i] = m; float* q = y; q[0] = 5.0f;"},
         "an address"),
        ({"FIRST": "for (int i = 0; i < n; i += 2) { y[i] = m; y[i + 1] = m; }"}, "than in a plain loop"),
        ({"FIRST": "y[0] = m; for (int i = 1; i < n; i++) y[i] = m;"}, "than in a plain loop"),
        ({"THEN": "for (int i = 0; i < n; i++) { float m = b[i]; o[row * n + i] = y[i] * m; }",
          }, "hides another one"),
        ({"THEN": "for (int i = 0; i < n; i++) { o[row * n + i] = y[i] * mean; y[0] = 1.0f; }"},
         "than in a plain loop"),
        ({"BETWEEN": "float mean = 0.0f; for (int i = 0; i < n / 2; i++) y[i] = b[i];"},
         "other values"),
        ({"BETWEEN": "float mean = 0.0f; for (int i = 3; i < n; i++) y[i] -= 1.0f;"},
         "other values"),
        ({"BETWEEN": "float mean = 0.0f; m = 3.0f; for (int i = 0; i < n / 2; i++) y[i] = b[i];"},
         "other values"),
        ({"BETWEEN": "float mean = n; n /= 2; for (int i = 0; i < n; i++) y[i] = b[i];"},
         "other values"),
        ({"BETWEEN": "float mean = 0.0f; for (int i = 0; i < n; i++) "
                     "{ if (b[i] > 0) continue; y[i] = -y[i]; }"}, "than in a plain loop"),
        ({"BETWEEN": "float mean = 0.0f; for (int i = 0; i < n; i++) "
                     "{ if (b[i] > 0) break; y[i] = -y[i]; }"}, "than in a plain loop"),
        ({"BETWEEN": "float mean = 0.0f; for (int i = 0; i < n; i++) "
                     "{ m += 1; o[row * n + i] = y[i]; y[i] = 1.0f; }"}, "made of changes"),
        ({"FIRST": "for (int i = 0; i < n; i++) y[i] = p[row * n + i];",
          "BETWEEN": "float mean = 0.0f; for (int i = 0; i < n; i++) "
                     "{ p[row * n + i] = 0; o[row * n + i] = y[i]; y[i] = 1.0f; }"},
         "made of changes"),
        ({"FIRST": "for (int i = 0; i < n; i++) { const int at = row * n + i; y[i] = p[at]; }",
          "BETWEEN": "float mean = 0.0f; for (int i = 0; i < n; i++) p[row * n + i] = 0;"},
         "before it has values"),
        ({"FIRST": "for (int i = 0; i < n; i++) y[i] = p[row * n + i];",
          "BETWEEN": "float mean = 0.0f; for (int j = 0; j < n; j++) y[j] += 1.0f; "
                     "for (int i = 0; i < n; i++) p[row * n + i] = 0;"}, "before it has values"),
        ({"FIRST": "float z[64]; for (int i = 0; i < n; i++) z[i] = a[row * n + i]; z[0] = m; "
                   "for (int i = 0; i < n; i++) y[i] = z[i];",
          "BETWEEN": "float mean = 0.0f; z[0] = 7.0f;"}, "than in a plain loop"),
        ({"BETWEEN": "float mean = 0.0f; for (int i = 0; i < n; i++) "
                     "{ float m = b[i]; o[row * n + i] = y[i] * m; y[i] = m; }"}, "hides another"),
        ({"FIRST": "{ float z[64]; for (int i = 0; i < n; i++) z[i] = a[row * n + i] * m; "
                   "float m = 5.0f; for (int i = 0; i < n; i++) o[row * n + i] = z[i] * m; }",
          "BETWEEN": "float mean = 0.0f;", "THEN": ""}, "before it has values"),
        ({"THEN": "for (int i = 0; i < n;) { float v = y[i++]; o[row * n + i - 1] = v; }"},
         "which element"),
        ({"THEN": "for (int i = 0; i < n; i++) { const float* q = &y[i]; o[row * n + i] = *q; }"},
         "an address"),
    ],
)  # fmt: skip
def test_what_is_refused(parts: dict[str, str], reason: str) -> None:
    assert reason in refused(recomputed(kernel_of(text_of(parts))))


def test_a_row_that_has_values_before_stays() -> None:
    text = text_of({}).replace("float y[64];", "float y[64] = {1.0f};")
    assert "begins with values" in refused(recomputed(kernel_of(text)))


PAIRS = """\
#pragma optiml launch k grid(cdiv(h, 32)) block(32)
__global__ void k(const float* a, const float* b, float* o, int h, int d) {
    int row = blockIdx.x * 32 + threadIdx.x;
    if (row >= h) return;
    float sum = 0.0f;
    for (int k = 0; k < d; ++k) {
        float x[4]BEGIN;
        #pragma unroll
        for (int i = 0; i < ROUNDS; ++i) x[i] = a[(row * 4 + i) * d + k];
        for (int i = 0; i < 4; ++i)
            for (int j = 0; j < 4; ++j) sum += x[i] * b[j * d + k] * x[j];
    }
    o[row] = sum;
}
"""
TERMS = {
    "a": Array("f4", ("h * 4", "d")),
    "b": Array("f4", ("4", "d")),
    "o": Array("f4", ("h",), "zeros"),
}


@pytest.mark.parametrize("begin", ["", " = {}", " = {0.0f}", "{1.0f}"])
def test_a_row_that_a_round_of_a_loop_keeps_is_found_again(begin: str) -> None:
    before = PAIRS.replace("BEGIN", begin).replace("ROUNDS", "4")
    after = written(recomputed(kernel_of(before)))
    assert "x[" not in after
    assert "unroll" not in after
    assert end_of(before, after, TERMS, {"h": 37, "d": 9}, {"h": 3, "d": 1}) == "same"


def test_a_row_of_which_a_part_begins_with_values_stays() -> None:
    text = PAIRS.replace("BEGIN", " = {}").replace("ROUNDS", "3")
    assert "begins with values" in refused(recomputed(kernel_of(text)))


def test_a_row_that_is_stored_to_as_what_it_was_made_of_changes_stays() -> None:
    parts = {
        "FIRST": "for (int i = 0; i < n; i++) y[i] = o[row * n + i];",
        "THEN": "for (int i = 0; i < n; i++) o[row * n + i] = y[n - 1 - i] * mean;",
    }
    before = text_of(parts)
    found = recomputed(kernel_of(before))
    assert not isinstance(found, Kernel), found.program.text


BLOCK = """\
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


def test_rows_that_a_block_keeps_in_shared_memory() -> None:
    (block,) = kernels(parse_program(BLOCK), None)
    alone = raised(block, rows=True)
    assert isinstance(alone, Kernel)
    made = found_again(alone)
    assert "x[i]" not in made.program.text
    assert rows_left(block, alone, made)  # what takes a loop to find stays
    assert not isinstance(raised(block), Kernel)
