"""Two loops as one: what a round leaves for that of the next loop, and what comes too late."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.alongside import alongside
from optiml_magic.kernels.primitives.base import Kernel, in_turn, kernels
from optiml_magic.kernels.primitives.localised import localised
from optiml_magic.source.program import parse_program

from .running import same_of_many as same
from .shapes import applied, refused

TEXT = """\
#pragma optiml scratch kept f4[n * m]
#pragma optiml launch k grid(cdiv(n, 32)) block(32)
__global__ void k(const float* x, float* kept, float* out, int n, int m) {
    int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    float s = 0.0f;
    for (int t = 0; t < m; ++t) {
        s = 0.5f * s + x[t * n + c];
        kept[t * n + c] = s;
    }
    float r = x[c];
    for (int t = 0; t < m; ++t) {
        r = fmaxf(r, kept[t * n + c]);
        out[t * n + c] = r;
    }
}
"""
SECOND = TEXT[TEXT.index("    float r") :]
OTHER = """\
    float r = 1.0f, q = r + n;
    #pragma unroll
    for (int u = 0; u < m; u++) {
        int v = u;
        r = fmaxf(r, kept[v * n + c] + q);
        out[u * n + c] = r;
    }
}
"""
SHAPES = {"x": ("m", "n"), "out": ("m", "n")}


def _first(text: str) -> Kernel:
    return kernels(parse_program(text), None)[0]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("t * n + c", "c * m + t"),
        (SECOND, OTHER),
        ("kept[t * n + c] = s;", "float v = s; kept[t * n + c] = v;"),
        ("r = fmaxf(r, kept[t * n + c]);", "float v = kept[t * n + c]; if (v > r) r = v;"),
        ("kept[t * n + c] = s;", "if (s > 0.0f) kept[t * n + c] = s; else kept[t * n + c] = -s;"),
    ],
)  # fmt: skip
def test_a_round_that_leaves_something_for_the_next_loop(old: str, new: str) -> None:
    text = TEXT.replace(old, new) if old else TEXT
    made = in_turn(_first(text), (alongside, localised))
    program = applied(made).program
    assert program.text.count("for (") == 1
    assert "scratch" not in program.text
    assert "kept_own[" not in program.text
    same(text, made, SHAPES, {"n": 50, "m": 7})


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("r = fmaxf(r, kept[t * n + c])", "r = fmaxf(r, kept[(m - 1 - t) * n + c])", "later round"),
        ("r = fmaxf(r, kept[t * n + c])", "r = fmaxf(r, kept[c])", "later round"),
        ("fmaxf(r, kept[t", "fmaxf(r + s, kept[t", "`s` is what the whole loop leaves"),
        ("float r = x[c];", "float r = s;", "comes from the loop before"),
        ("float r = x[c];", "float r = kept[c];", "written before it is read"),
        ("float r = x[c];", "float r = 0.0f; out[c] = r;", "between the loops"),
        ("        out[t", "        if (r > 1.0f) break;\n        out[t", "no two loops"),
        ("        out[t", "        if (r > 1.0f) continue;\n        out[t", "before its end"),
        ("kept[t * n + c] = s;", "kept[t * n + c] = s; out[c] = s;", "later round"),
        ("float r = x[c];\n    for (int t = 0; t < m", "float r = x[c];\n    for (int t = 0; t < n", "no two loops"),
        ("for (int t = 0; t < m; ++t) {\n        r", "for (unsigned t = 0; t < m; ++t) {\n        r", ""),
        ("float r = x[c];", "float r = x[c];\n    __syncthreads();", "wait"),
    ],
)  # fmt: skip
def test_refused(old: str, new: str, reason: str) -> None:
    text = TEXT.replace(old, new)
    assert text != TEXT
    assert reason in refused(alongside(_first(text)))[0]
