"""Local arrays of flags as bits of a number."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.flag_words import flags_in_words

from .running import same
from .shapes import applied, kernel, refused

TEXT = """\
#define MOST 40
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__device__ int first(const int* q) {
    bool used[8];
    for (int i = 0; i < 8; ++i) used[i] = false;
    for (int i = 0; i < 4; ++i) used[q[i] & 7] = true;
    for (int i = 0; i < 8; ++i) if (!used[i]) return i;
    return 8;
}
__global__ void k(const int* q, int* y, int n) {
    int r = blockIdx.x * blockDim.x + threadIdx.x;
    if (r >= n) return;
    int s = 0;
    %s
    y[r] = s;
}
"""
SHAPES = {"q": ("i4", "n", "4"), "y": ("i4", "n")}


@pytest.mark.parametrize(
    ("body", "now"),
    [
        ("bool seen[MOST] = {}; for (int i = 0; i < 4; ++i) { int at = q[r * 4 + i] & 31; if (seen[at]) continue; seen[at] = true; s += at; }",
         "unsigned long long seen_bits = 0;"),
        ("char m[32] = {0}, t = 3; for (int i = 0; i < 4; ++i) m[q[r * 4 + i] & 31] = q[r] > i; for (int i = 0; i < 32; ++i) s += m[i] * i + t;",
         "unsigned int m_bits = 0;"),
        ("int a[4], b[4]; for (int i = 0; i < 4; ++i) { a[i] = 0; b[i] = 1; } a[q[r] & 3] = 1; b[a[q[r + 0] & 3]] = !a[1]; b[2] = a[2] == b[q[r] & 3]; for (int i = 0; i < 4; ++i) s += a[i] + 2 * b[i];",
         "unsigned int b_bits = 0;"),
        ("s = first(q + r * 4);", "unsigned int used_bits = 0;"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("n", [1, 70])
def test_flags(body: str, now: str, n: int) -> None:
    text = TEXT % body
    made = flags_in_words(kernel(text))
    assert now in applied(made).program.text
    same(text, made, SHAPES, {"n": n})


PLAIN = TEXT[: TEXT.index("__device__")] + TEXT[TEXT.index("__global__") :]


@pytest.mark.parametrize(
    "body",
    [
        "int a[4] = {}; a[q[r] & 3] = 2; s = a[1];",
        "int a[4] = {}; a[q[r] & 3] += 1; s = a[1];",
        "int a[4] = {}; a[q[r] & 3]++; s = a[1];",
        "bool a[65] = {}; a[q[r] & 63] = true; s = a[1];",
        "bool a[4] = {}; bool* p = a; p[q[r] & 3] = true; a[q[r] & 3] = true; s = a[1];",
        "bool a[4] = {}; bool* p = &a[q[r] & 3]; *p = true; a[q[r] & 3] = true; s = a[1];",
        "bool a[4] = {true}; a[q[r] & 3] = true; s = a[1];",
        "bool a[4] = {}; a[0] = true; s = a[1];",
        "bool a[4] = {}; int i = 0; a[i++] = true; s = a[q[r] & 3];",
        "bool a[4] = {}; if (a[q[r] & 3] = q[r] > 1) s = a[1];",
        "bool a[4] = {}; const bool& f = a[q[r] & 3]; a[q[r] & 3] = true; s = f;",
        "bool a[32] = {}, any = a[q[r] & 31]; a[q[r] & 3] = true; s = any;",
        "bool a[4] = {}; a[q[r] & 3] = true; for (bool b : a) s += b;",
        "bool a[4] = {}; auto set = [](bool& f) { f = true; }; set(a[q[r] & 3]); a[1] = true; s = a[q[r] & 3];",
        "float a[4] = {}; a[q[r] & 3] = true; s = a[1];",
    ],
)
def test_other_arrays(body: str) -> None:
    assert "holds flags alone" in refused(flags_in_words(kernel(PLAIN % body)))[0]
