"""Two loops as one: what a round leaves for that of the next loop, and what comes too late."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.alongside import alongside, products_alongside
from optiml_magic.kernels.primitives.base import Kernel, in_turn, kernels
from optiml_magic.kernels.primitives.localised import localised
from optiml_magic.source.program import parse_program

from .running import same as always_same
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


def test_names_that_a_round_hides_are_its_own() -> None:
    hidden = "float r = 0.25f; kept[t * n + c] = s + r;"
    text = TEXT.replace("kept[t * n + c] = s;", hidden).replace("    float r = x[c];\n", "")
    text = text.replace("float s = 0.0f;", "float s = 0.0f, r = x[c];")
    made = alongside(_first(text))
    assert applied(made).program.text.count("for (") == 1
    always_same(text, made, SHAPES, {"n": 50, "m": 7})


def test_what_the_first_counter_would_hide_stays_behind() -> None:
    text = TEXT.replace("float s = 0.0f;", "float s = 0.0f; int t = 3;").replace(SECOND, OTHER)
    text = text.replace("out[u * n + c] = r;", "out[u * n + c] = r + t;")
    assert "call something `t`" in refused(alongside(_first(text)))[0]


CELL = """\
#pragma optiml launch cell grid(cdiv(w, 8), cdiv(h, 4)) block(8, 4)
__global__ void cell(const float* x, const float* y, const float* A, const float* B, const float* C, const float* D,
                     float* out, int h, int w, int n, int m) {
    int i = blockIdx.y * blockDim.y + threadIdx.y, j = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= h || j >= w) return;
    float a = 0.0f;
    for (int k = 0; k < n; ++k) a += x[i * n + k] * A[j * n + k];
    float b = 0.0f;
    #pragma unroll 4
    for (int k = 0; k < m; ++k) b += y[i * m + k] * B[j * m + k];
    float gate = 1.0f / (1.0f + expf(-a - b));
    const float* own = C + j * n;
    float c = 0.5f;
    #pragma unroll 4
    for (int k = 0; k < n; ++k) c += x[i * n + k] * own[k];
    float d = gate;
    for (int k = 0; k < m; ++k) d += y[i * m + k] * D[j * m + k];
    out[i * w + j] = gate * c + d;
}
"""
CELL_SHAPES = {
    "x": ("h", "n"), "y": ("h", "m"), "A": ("w", "n"), "B": ("w", "m"), "C": ("w", "n"),
    "D": ("w", "m"), "out": ("h", "w"),
}  # fmt: skip
CELL_SIZES = {"h": 11, "w": 19, "n": 7, "m": 9}


def test_products_of_one_row_are_one_loop_whatever_is_computed_between_them() -> None:
    made = products_alongside(_first(CELL))
    text = applied(made).program.text
    # The last product goes on from what the gate leaves, and so from the product before.
    assert text.count("for (") == 3
    assert text.index("c += x[i * n + k]") < text.index("float b = 0.0f;")
    assert text.count("#pragma unroll") == 1
    same(CELL, made, CELL_SHAPES, CELL_SIZES)


@pytest.mark.parametrize(
    ("old", "new", "loops"),
    [
        ("float gate =", "if (a > b) return;\n    float gate =", 4),
        ("float gate =", "out[i * w + j] = a;\n    float gate =", 3),
        ("float gate =", "x[i * n] = a;\n    float gate =", 4),
        ("float c = 0.5f;", "float c = out[i * w + j];", 3),
        ("float c = 0.5f;", "float c = gate;", 4),
        ("float c = 0.5f;", "float c = 0.5f; if (gate > 0.5f) c = 1.0f;", 4),
        ("float c = 0.5f;", "int t = i; float c = t++; out[i] = t;", 4),
        ("b += y[i * m + k] * B", "x[i * n + k % n] = 1.0f, b += y[i * m + k] * B", 4),
        ("for (int k = 0; k < n; ++k) c", "for (int k = 1; k < n; ++k) c", 4),
        ("x[i * n + k] * own[k]", "y[i * m + k] * own[k]", 4),
    ],
)  # fmt: skip
def test_products_that_need_what_is_between_them_stay_apart(old: str, new: str, loops: int) -> None:
    text = CELL.replace(old, new).replace("const float* x", "float* x")
    made = products_alongside(_first(text))
    assert applied(made).program.text.count("for (") == loops
    if loops == 3:
        same(text, made, CELL_SHAPES, CELL_SIZES)


def test_products_by_pointers_are_one_loop() -> None:
    text = (
        CELL[: CELL.index("    float a =")]
        + """\
    const float *p = x + i * n, *q = A + j * n;
    int left = n;
    float a = 0.0f, c = 0.0f;
    while (left-- > 0) a += *p++ * *q++;
    p = x + i * n;
    { const float* q = C + j * n; for (int k = n; k > 0; --k) c += *p++ * *q++; }
    out[i * w + j] = a / (1.0f + expf(-c));
}
"""
    )
    made = products_alongside(_first(text))
    after = applied(made).program.text
    assert after.count("for (") == 1
    assert "while" not in after
    same(text, made, CELL_SHAPES, CELL_SIZES)
