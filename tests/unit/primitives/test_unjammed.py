"""Results that a thread has side by side: one after the other, by a thread each, under a guard."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import where_legal
from optiml_magic.kernels.primitives.dispersed import dispersed, item_a_thread
from optiml_magic.kernels.primitives.guarded import guarded
from optiml_magic.kernels.primitives.scoped import scoped
from optiml_magic.kernels.primitives.unjammed import unjammed
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#pragma optiml launch k grid(cdiv(n, 32), cdiv(m, 16)) block(32, 4)
__global__ void k(const float* a, const float* b, float* o, int m, int n, int d) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 16 + threadIdx.y;
    BEFORE
    float acc[4] INIT;
    for (int k = 0; k < d; ++k) {
        float x = b[k * n + col];
        for (int r = 0; r < 4; ++r) acc[r] += a[(row + r * 4) * d + k] * x;
    }
    BETWEEN
    for (int r = 0; r < 4; ++r) { STORE }
}
"""
STORE = "if (row + r * 4 < m && col < n) o[(row + r * 4) * n + col] = 2.0f * acc[r];"
ARRAYS = {
    # Threads beyond the last row or column load, and store nothing.
    "a": Array("f4", ("m + 16", "d")),
    "b": Array("f4", ("d + 1", "n + 160")),
    "o": Array("f4", ("m", "n"), "zeros"),
}


def text_of(store: str = STORE, before: str = "", init: str = "= {0.0f}", between: str = "") -> str:
    words = {"STORE": store, "BEFORE": before, "INIT": init, "BETWEEN": between}
    text = TEXT
    for name, new in words.items():
        text = text.replace(name, new)
    return text


def changed(text: str, *pairs: tuple[str, str]) -> str:
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return text


def same(before: str, after: str) -> None:
    sizes, small = {"m": 37, "n": 71, "d": 9}, {"m": 3, "n": 5, "d": 1}
    assert end_of(before, after, ARRAYS, sizes, small) == "same"


TERM = "acc[r] += a[(row + r * 4) * d + k] * x;"
BESIDE = (
    changed(text_of(), ("+ threadIdx.y", "+ threadIdx.y * 4"), ("row + r * 4", "row + r"))
)  # fmt: skip
BEGUN = text_of(init="", before="").replace(
    "    for (int k", "    for (int r = 0; r < 4; ++r) acc[r] = 0.5f * r;\n    for (int k", 1
)
GOOD = [
    text_of(),
    BESIDE,
    BEGUN,
    text_of(init="= {}"),
    text_of(between="float scale = 2.0f; int m2 = m;", store=STORE.replace("2.0f", "scale")),
    changed(text_of(), ("float acc[4]", "const int T = 4; float acc[T]")),
    changed(text_of(), ("for (int r", "#pragma unroll\n    for (int r")),
    changed(text_of(), (TERM, "{ float y = a[(row + r * 4) * d + k]; acc[r] = acc[r] + y * x; }")),
    changed(text_of(), (TERM, "{ if (k > r) acc[r] += a[(row + r * 4) * d + k] * x; }")),
    changed(text_of(), (TERM, TERM + " for (int r = 0; r < 4; ++r) acc[r] *= 0.5f;")),
    changed(text_of(), ("int r", "unsigned r")),
    text_of("int y = row + r * 4; if (y >= m || col >= n) continue; o[y * n + col] += acc[r];"),
]  # fmt: skip


@pytest.mark.parametrize("before", GOOD)
def test_results_come_one_after_the_other(before: str) -> None:
    after = written(unjammed(kernel_of(before)))
    assert "acc[" not in after
    assert "float acc_one" in after
    same(before, after)


@pytest.mark.parametrize("before", [t for t in GOOD if "k > r" not in t and "0.5f * r" not in t
                                    and "continue" not in t])  # fmt: skip
def test_a_thread_has_one_result(before: str) -> None:
    after = written(item_a_thread(kernel_of(before)))
    assert "block(32, 4)" in after
    assert "r < 4" not in after
    assert after.index("return;") < after.index("for (int k")
    same(before, after)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (text_of(init="= {1.0f}"), ""),
        (text_of(init="= {0.0f, 1.0f}"), ""),
        (changed(text_of(), ("acc[4]", "acc[m]")), ""),
        (changed(text_of(), ("acc[4]", "acc[3]")), "is not known"),
        (changed(text_of(), ("acc[r] +=", "acc[3 - r] +=")), "another number"),
        (changed(text_of(), (TERM, TERM + " acc[0] += 1.0f;")), "another number"),
        (changed(text_of(), (TERM, TERM + " if (x > 1.0f) break;")), "a round is left"),
        (changed(text_of(), (TERM, "{ if (x > 1.0f) continue; " + TERM + " }")), "a round is left"),
        (changed(text_of(), (TERM, TERM + " o[k] = x;")), ""),
        (changed(text_of(), (TERM, TERM + " atomicAdd(&o[k], x);")), ""),
        (changed(text_of(), (TERM, TERM + ' printf("%f", x);')), ""),
        (text_of(before="int c = 0;").replace(TERM, "{ " + TERM + " c += r; }"), "else goes"),
        (text_of(before="float z[4];").replace(TERM, "{ " + TERM + " z[r] = x; }"), "else goes"),
        (text_of(before="float c = 1;", store="c += acc[r]; " + STORE)
         .replace("* x;", "* x * c;"), "what another is made of"),
        (text_of(before="float z[4] = {};", store="z[1] += acc[r]; " + STORE)
         .replace("* x;", "* x * z[1];"), "what another is made of"),
        (text_of(between="o[0] = 1.0f;"), "between its results"),
        (text_of(between="float q = atomicAdd(&o[0], 1.0f);"), "between its results"),
        (text_of(between="for (int r = 0; r < d; ++r) o[r] = 1.0f;"), "between its results"),
        (text_of(between="float* p = acc; p[1] = 3.0f;"), "another number"),
        (text_of(store=STORE + " if (r == m) break;"), ""),
        (text_of(store=STORE + " if (r == m) return;"), ""),
        (text_of(store="if (row < m && col < n) o[row * n + col] += acc[r] * acc[0];"), "another"),
        (changed(text_of(), ("const float* a", "float* a"), ("2.0f * acc", "a[1] = acc")),
         "where others are made from"),
        (changed(text_of(), ("r < 4; ++r) {", "r < 3; ++r) {")), "alike"),
        (changed(text_of(), ("++r", "r += 2")), "another number"),
        (changed(text_of(), ("float acc", "volatile float acc")), ""),
        (text_of(between="__syncthreads();"), "wait"),
        (text_of(store="").replace("for (int r = 0; r < 4; ++r) {  }", "o[0] = acc[1];"), "anoth"),
    ],
)  # fmt: skip
def test_what_is_more_than_results_stays(before: str, reason: str) -> None:
    assert reason in refused(unjammed(kernel_of(before)))


def test_a_name_that_hides_another_behind_the_sums_keeps_these_where_they_are() -> None:
    before = text_of(before="{", between="int row = 0;", store="if (row + r * 4 < m && col < n) "
                     "o[(row + r * 4) * n + col] = acc[r];") + "}"  # fmt: skip
    assert "between its results" in refused(unjammed(kernel_of(before)))


ROUNDS = """\
#pragma optiml launch k grid(cdiv(n, 128), m) block(32)
__global__ void k(const float* a, const float* b, float* o, int m, int n, int d) {
    int col = blockIdx.x * 128 + threadIdx.x;
    for (int c = 0; c < 4; ++c) {
        float s = 0.0f;
        for (int k = 0; k < d; ++k) s += a[blockIdx.y * d + k] * b[k * n + col + c * 32];
        if (col + c * 32 < n) o[blockIdx.y * n + col + c * 32] = s;
    }
}
"""
WIDE = "row = 0; o += (size_t)blockIdx.y * 4 * n; a += blockIdx.y * 4 * d; m -= blockIdx.y * 4;"
POINTER = "    float* p = o + (size_t)blockIdx.y * 4 * n;\n    for (int c"
ROWS = """\
#pragma optiml launch k grid(cdiv(n, 32), cdiv(m * 4, 4)) block(32)
__global__ void k(const float* a, const float* b, float* o, int m, int n, int d) {
    int col = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 4;
    for (int c = 0; c < 4; ++c) {
        float s = 0.0f;
        for (int k = 0; k < d; ++k) s += a[(row + c) * d + k] * b[k * n + col];
        if (col < n && row + c < m) o[(row + c) * n + col] = s;
    }
}
"""


@pytest.mark.parametrize(
    "before",
    [
        ROUNDS,
        changed(ROUNDS, ("+ threadIdx.x;", "+ threadIdx.x * 4;"), ("c * 32", "c")),
        changed(ROUNDS, ("for (int c", "if (m > 2) for (int c")),
        changed(ROUNDS, ("cdiv(n, 128)", "(n + 127) / 128")),
        changed(ROUNDS, ("cdiv(n, 128)", "n / 128 + 1")),
        changed(ROWS, ("m * 4", "m")),
        changed(
            ROWS,
            ("m * 4", "m"),
            ("    for (int c", "    float* p = o + blockIdx.y * 4 * n;\n    for (int c"),
            ("o[(row + c) * n", "p[c * n"),
        ),
        changed(ROWS, ("m * 4", "m"), ("y * 4;", "y * 4 + threadIdx.y * 4;")),
    ],
)
def test_rounds_are_threads_of_more_blocks(before: str) -> None:
    after = written(dispersed(kernel_of(before)))
    assert "c < 4" not in after
    same(before, after)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (changed(ROUNDS, ("c * 32", "c * 16")), "not items"),
        (changed(ROUNDS, ("* 128 +", "* 64 +")), "not items"),
        (changed(ROUNDS, ("o[blockIdx.y * n + col + c * 32]", "o[blockIdx.y * n + col]")), "one el"),
        (changed(ROUNDS, ("= s;", "= s + threadIdx.x;")), "not items"),
        (changed(ROUNDS, ("= s;", "= s + c;")), "not items"),
        (changed(ROUNDS, ("= s;", "= s + blockIdx.x;")), "not items"),
        (changed(ROUNDS, ("= s;", "= s + gridDim.x;")), "not items"),
        (changed(ROUNDS, ("= s;", "= s + col;")), "not items"),
        (changed(ROUNDS, ("if (col + c * 32 < n)", "if (c < 2)")), "not items"),
        (changed(ROUNDS, ("if (col + c * 32 < n)", "if (threadIdx.x < 9)")), "not items"),
        (changed(ROUNDS, ("k < d; ++k", "k < c; ++k")), "not items"),
        (changed(ROUNDS, ("    for (int c", "    o[0] = 1.0f;\n    for (int c")), "not all"),
        (changed(ROUNDS, ("float s = 0.0f;", "float s = o[blockIdx.y * n + col];")), "stores"),
        (changed(ROUNDS, ("    for (int c", "    float t = 0;\n    for (int c"),
                 ("= s;", "= t += s;")), "round"),
        (changed(ROUNDS, ("        if (col", "        if (s > 9.0f) return;\n        if (col")), ""),
        (changed(ROUNDS, ("c < 4", "c < m")), "not one loop"),
        (changed(ROUNDS, ("int col =", "unsigned char t = threadIdx.x; int col ="),
                 ("+ threadIdx.x;", "+ t;")), "not items"),
        (changed(ROUNDS, ("+ threadIdx.x;", "+ (unsigned char)threadIdx.x;")), "not items"),
        (changed(ROUNDS, ("+ threadIdx.x;", "+ min(threadIdx.x, 40u);")), "not items"),
        (changed(ROUNDS, ("int c", "short c"), ("+ threadIdx.x;", "+ threadIdx.x * 4;"),
                 ("c * 32", "c")), ""),
        (changed(ROWS, ("row = blockIdx.y * 4;", WIDE)), ""),
        (changed(ROWS, ("    for (int c", POINTER), ("o[(row + c) * n", "p[c * n")), "not items"),
        (changed(ROWS, ("row = blockIdx.y * 4", "row = blockIdx.y * 4; short z = row")), "not items"),
        (changed(ROWS, ("block(32)", "block(32, 2)"), ("* 4;", "* 4 + threadIdx.y;")), "not items"),
        (changed(ROUNDS, ("o[blockIdx.y * n + col + c * 32] = s", "atomicAdd(&o[col + c * 32], s)")),
         "not followed"),
        (changed(ROUNDS, ("= s;", '= s; printf("%f", s);')), "prints"),
        (changed(ROUNDS, ("cdiv(n, 128), m", "n"), ("blockIdx.y", "blockIdx.x")), "not items"),
    ],
)  # fmt: skip
def test_rounds_that_are_no_items_stay(before: str, reason: str) -> None:
    assert reason in refused(dispersed(kernel_of(before)))


LATE = """\
#pragma optiml launch k grid(cdiv(n, 32), m) block(32)
__global__ void k(const float* a, const float* b, float* o, int m, int n, int d) {
    int col = blockIdx.x * 32 + threadIdx.x;
    float s = 0.0f;
    for (int k = 0; k < d; ++k) s += b[k * n + col];
    int top = n;
    if (col < top) o[blockIdx.y * n + col] = s;
}
"""


@pytest.mark.parametrize(
    "before",
    [
        LATE,
        changed(LATE, ("    float s", "    if (m > 1) { float s"), ("= s;", "= s; }")),
        changed(LATE, ("o[blockIdx.y * n + col] = s;", "{ int y = blockIdx.y * n; o[y + col] = s; }")),
    ],
)  # fmt: skip
def test_a_guard_of_all_that_is_stored_comes_first(before: str) -> None:
    after = written(guarded(kernel_of(before)))
    assert after.index("if (!(col < top)) return;") < after.index("for (int k")
    same(before, after)


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (changed(LATE, ("    int top", "    o[0] = 1.0f;\n    int top")), "something else"),
        (changed(LATE, ("    int top", '    printf("%f", s);\n    int top')), "only computed"),
        (changed(LATE, ("= s;", "= s; else o[0] = 1.0f;")), "branch"),
        (changed(LATE, ("    if", "    top = k2;\n    if"), ("    int top", "    int k2 = d; int top")),
         "not known"),
        (changed(LATE, ("col < top", "s < 3.0f")), "not known"),
        (changed(LATE, ("col < top", "a[col] < 3.0f")), "more than to compare"),
        (changed(LATE, ("int top = n", "int top = a[3]")), "more than to compare"),
        (changed(LATE, ("int top = n", "int top = s")), "not known"),
        (changed(LATE, ("    for (int k = 0; k < d; ++k) s += b[k * n + col];\n", "")), ""),
        (changed(LATE, ("= s;\n", "= s;\n    o[1] = 2.0f;\n")), "branch"),
        (changed(LATE, ("    int top", "    __syncthreads();\n    int top")), "wait"),
    ],
)  # fmt: skip
def test_a_guard_that_is_not_all_stays(before: str, reason: str) -> None:
    assert reason in refused(guarded(kernel_of(before)))


PLANES = """\
#define T 4
#pragma optiml launch k grid(cdiv(n, 32), cdiv(m, 16)) block(8, 4)
__global__ void k(const float* a, const float* b, float* o, int m, int n, int d) {
    int col = blockIdx.x * 32 + threadIdx.x * 4, row = blockIdx.y * 16 + threadIdx.y * 4;
    float acc[4][T];
    for (int r = 0; r < 4; ++r)
        for (int c = 0; c < T; ++c) acc[r][c] = 0.0f;
    for (int k = 0; k < d; ++k) {
        float x[4], y[T];
        #pragma unroll
        for (int r = 0; r < 4; ++r) x[r] = a[(row + r) * d + k];
        #pragma unroll
        for (int c = 0; c < T; ++c) y[c] = b[k * (n + 31) + col + c];
        for (int r = 0; r < 4; ++r)
            #pragma unroll
            for (int c = 0; c < T; ++c) acc[r][c] += x[r] * y[c];
    }
    for (int r = 0; r < 4; ++r)
        for (int c = 0; c < T; ++c)
            if (row + r < m && col + c < n) o[(row + r) * n + col + c] = acc[r][c];
}
"""
FLAT = changed(
    PLANES, ("acc[4][T]", "acc[T * 4]"), ("acc[r][c] = 0", "acc[r * T + c] = 0"),
    ("acc[r][c] +=", "acc[c + T * r] +="), ("= acc[r][c]", "= acc[r * T + c]"),
)  # fmt: skip
NEST = "for (int r = 0; r < 4; ++r)\n        for (int c = 0; c < T; ++c) acc[r * T + c] = 0.0f;"
AT_ONCE = changed(FLAT, (NEST, "for (int i = 0; i < 16; ++i) acc[i] = 0.0f;"))
KEPT = changed(
    AT_ONCE, ("        float x[4], y[T];\n", ""),
    ("    for (int k", "    float x[4] = {0.0f}, y[T] = {0.0f};\n    for (int k"),
)  # fmt: skip
TILES = {
    "a": Array("f4", ("m + 16", "d")),
    "b": Array("f4", ("d", "n + 31")),
    "o": Array("f4", ("m", "n"), "zeros"),
}


@pytest.mark.parametrize(
    "before",
    [
        PLANES,
        FLAT,
        AT_ONCE,
        changed(AT_ONCE, ("acc[T * 4];", "acc[T * 4] = {0.0f};")),
        changed(FLAT, (NEST, ""), ("acc[T * 4];", "acc[T * 4] = {};")),
        changed(PLANES, ("int r = 0", "unsigned r = 0"), ("int c = 0", "unsigned c = 0")),
    ],
)
def test_a_thread_has_one_result_of_a_plane(before: str) -> None:
    after = written(item_a_thread(kernel_of(before)))
    assert "block(8, 4)" in after
    assert "acc[" not in after
    assert "T;" not in after
    assert "require n > 3" in after
    assert end_of(before, after, TILES, {"m": 37, "n": 71, "d": 9}, {"m": 3, "n": 5, "d": 1}) in (
        "same", "narrowed",
    )  # fmt: skip


def test_rows_that_a_thread_keeps_outside_of_the_loop_belong_to_a_round() -> None:
    before = changed(KEPT, ("float x[4] = {0.0f}, y[T] = {0.0f};",
                            "float x[4] = {0.0f};\n    float y[T] = {0.0f};"))  # fmt: skip
    after = written(item_a_thread(where_legal(scoped, kernel_of(before))))
    assert end_of(before, after, TILES, {"m": 37, "n": 71, "d": 9}, {"m": 4, "n": 8, "d": 1}) in (
        "same", "narrowed",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (changed(PLANES, ("acc[r][c] += x[r]", "acc[r][3 - c] += x[r]")), ""),
        (changed(PLANES, ("acc[r][c] += x[r]", "acc[c][r] += x[r]")), "not items"),
        (changed(FLAT, ("acc[c + T * r]", "acc[c * T + r]")), ""),
        (changed(FLAT, ("acc[T * 4]", "acc[T * 4 - 1]")), ""),
        (changed(PLANES, ("(row + r) * n", "(row + r) * 3")), "one element"),
        (changed(PLANES, ("(row + r) * n", "(row + r) * (n - m)")), "one element"),
        (changed(PLANES, ("o[(row + r) * n + col + c]", "o[(row + r) * n + col]")), ""),
        (changed(PLANES, ("acc[4][T]", "acc[4][m]")), ""),
    ],
)
def test_planes_that_stay(before: str, reason: str) -> None:
    assert reason in refused(item_a_thread(kernel_of(before)))
