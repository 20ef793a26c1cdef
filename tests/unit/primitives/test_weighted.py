"""Rows that weigh keys by a recurrence, a tile of both at a time, and those that stay as they are."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.weighted_tiles import by_tiles
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array
from tests.unit.primitives.alike import end_of, kernel_of, refused, unchanged, written

ATTENTION = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* q, const float* keys, const float* v, const int* few, float* out,
                  int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float a[12];
    for (int e = 0; e < 12; e++) a[e] = 0.0f;
    float top = -1e30f, sum = 0.0f;
    for (int j = 0; j < m; j++) {
        float s = 0.0f;
        for (int d = 0; d < 8; d++) s += q[i * 8 + d] * keys[j * 8 + d];
        float best = fmaxf(top, s);
        float c = expf(top - best);
        float p = expf(s - best);
        sum = sum * c + p;
        for (int e = 0; e < 12; e++) a[e] = a[e] * c + p * v[j * 12 + e];
        top = best;
    }
    for (int e = 0; e < 12; e++) out[i * 12 + e] = a[e] / (sum + 1.0f);
}
"""
ARRAYS = {
    "q": Array("f4", ("n", "8")), "keys": Array("f4", ("m", "8")), "v": Array("f4", ("m", "12")),
    "few": Array("i4", ("m",), "few bits"), "out": Array("f4", ("n", "12"), "zeros"),
}  # fmt: skip
SIZES, OTHERS = {"n": 67, "m": 39}, {"n": 5, "m": 70}
POINTS = (
    {"BM": 32, "BN": 32, "TM": 4, "LANES": 16}, {"BM": 16, "BN": 16, "TM": 8, "LANES": 16},
    {"BM": 64, "BN": 64, "TM": 2, "LANES": 8},
)  # fmt: skip
_UPDATE = "a[e] = a[e] * c + p * v[j * 12 + e];"
_LOOP = "int j = 0; j < m; j++"
_ADDED = f"for (int e = 0; e < 12; e++) {_UPDATE}"
_TWICE = """for (int e = 0; e < 12; e++) a[e] *= c;
        for (int e = 0; e < 12; e++) a[e] += v[j * 12 + e] * p;"""
_DOT = "for (int d = 0; d < 8; d++) s += q[i * 8 + d] * keys[j * 8 + d];"


@pytest.mark.parametrize("at", range(len(POINTS)))
def test_tiles_of_any_shape_leave_the_same(at: int) -> None:
    made = parse_program(written(by_tiles(kernel_of(ATTENTION))))
    text = made.with_values(POINTS[at]).text
    assert end_of(ATTENTION, text, ARRAYS, SIZES, OTHERS, rounds=True) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (_LOOP, "int j = 0; j <= i && j < m; j++"),
        (_LOOP, "int j = max(0, i - 9); j < min(m, i + 5); ++j"),
        (_LOOP, "int j = 2; j < m && j <= (unsigned)i; j++"),
        (_LOOP, "int j = i / 2; i > j && m > j; j += 1"),
        (_LOOP, "unsigned j = 0; j < m; j++"),
        (_LOOP, "size_t j = i > 9 ? i - 9 : 0; j < m; j++"),
        (_DOT, _DOT + " if (few[j]) continue;"),
        (_ADDED, f"if (!few[j]) {_ADDED}"),
        (_ADDED, _TWICE),
        (_UPDATE, "{ a[e] *= c; a[e] -= p * (v[j * 12 + e] - 0.5f) / 2.0f; }"),
        (_UPDATE, "a[e] += p * v[j * 12 + e];"),
        (_UPDATE, "a[e] += p * __ldg(&v[j * 12 + e]);"),
        (_DOT, _DOT.replace("keys[j * 8 + d]", "__ldg(keys + j * 8 + d)")),
        (_UPDATE, "a[e] = fmaf(c, a[e], -(p * v[j * 12 + e]));"),
        (_UPDATE, "a[e] = c * (a[e] + (float)(v[j * 12 + e]));"),
        (_UPDATE, "a[e] += p * (v[j * 12 + e] + j);"),
        ("s += q[i * 8 + d] * keys[j * 8 + d]",
         "{ float apart = q[i * 8 + d] - keys[j * 8 + d]; s += apart * apart; }"),
        ("s += q[i * 8 + d] * keys[j * 8 + d]", "s = fmaxf(s, q[i * 8 + d] + keys[j * 8 + d])"),
        ("float s = 0.0f", "float s = few[j]"),
        (_DOT, "float two = 0.0f; " + _DOT.replace("s +=", "two +=") + _DOT + " s += two;"),
        (_DOT, _DOT.replace("q[i * 8 + d]", "q[i * 8 + d] * own")),
    ],
)  # fmt: skip
def test_rows_of_other_recurrences_leave_the_same(old: str, new: str) -> None:
    text = ATTENTION.replace(old, new)
    if "own" in new:
        text = text.replace("float top", "float own = q[i * 8] + 1.0f, top")
    assert text != ATTENTION
    made = written(by_tiles(kernel_of(text)))
    assert unchanged(text, made, ARRAYS, SIZES, OTHERS, rounds=True) == "same"


@pytest.mark.parametrize("apart", ["w", "(w / 4 * 4)"])
def test_keys_may_lie_apart_by_what_sizes_say(apart: str) -> None:
    text = ATTENTION.replace("int m)", "int m, int w)")
    text = text.replace("keys[j * 8", f"keys[j * {apart}").replace("v[j * 12", f"v[j * {apart}")
    assert text.count(apart) > 1
    arrays = {**ARRAYS, "keys": Array("f4", ("m", "w")), "v": Array("f4", ("m", "w"))}
    made = written(by_tiles(kernel_of(text)))
    sizes = {**SIZES, "w": 15}, {**OTHERS, "w": 12}
    assert unchanged(text, made, arrays, *sizes, rounds=True) == "same"


def test_scores_may_be_found_twice() -> None:
    first = f"for ({_LOOP}) {{ float s = 0.0f; {_DOT} top = fmaxf(top, s); }}\n    for ({_LOOP})"
    text = ATTENTION.replace(f"for ({_LOOP})", first).replace("fmaxf(top, s);\n", "top;\n")
    made = written(by_tiles(kernel_of(text)))
    assert made.count("keys_range[1]") > 1
    assert end_of(text, made, ARRAYS, SIZES, OTHERS, rounds=True) == "same"


def test_the_blocks_with_most_keys_come_first() -> None:
    causal = written(by_tiles(kernel_of(ATTENTION.replace(_LOOP, "int j = 0; j <= i; j++"))))
    assert "gridDim.x - 1 - blockIdx.x" in causal
    assert "gridDim.x" not in written(by_tiles(kernel_of(ATTENTION)))


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (_UPDATE, "a[e] = a[e] * c + p * v[j * 12 + e] + 1.0f;", "not come from a key"),
        (_UPDATE, "a[e] = p * v[j * 12 + e];", "what it was"),
        (_UPDATE, "a[e] = a[e] * v[j * 12 + e];", "factor and a sum"),
        (_UPDATE, "a[e] = fmaxf(a[e], p * v[j * 12 + e]);", "factor and a sum"),
        (_UPDATE, "a[e] += p * v[j * 12 + e] * q[i * 8 + e % 8];", "factor and a sum"),
        (_UPDATE, "a[e] += p * v[j * 12 + e] + c * keys[j * 8 + e % 8];", "more than one row"),
        (_UPDATE, "a[11 - e] += p * v[j * 12 + e];", "another element"),
        (_UPDATE, "a[e] += p * v[few[j] * 12 + e];", "evenly"),
        (_UPDATE, "{ a[e] += p * v[j * 12 + e]; sum += p; }", "scalars"),
        ("top = best;", "top = best + a[0];", "as it grows"),
        ("top = best;", "top = best; if (few[j]) break;", "leaves"),
        ("top = best;", "top = best; out[i * 12] = top;", "for each key"),
        (_DOT, f"if (few[j]) {_DOT}", "some keys"),
        (_DOT, _DOT.replace("q[i * 8 + d]", "(q[i * 8 + d] * top)"), "neither a row nor a key"),
        (_DOT, _DOT.replace("keys[j * 8 + d]", "keys[few[j] * 8 + d]"), "evenly"),
        (_DOT, _DOT.replace("keys[j * 8 + d]", "keys[(i + j) % m * 8 + d]"), ""),
        (
            _DOT,
            "float now[8]; for (int d = 0; d < 8; d++) now[d] = keys[j * 8 + d]; "
            + _DOT.replace("keys[j * 8 + d]", "now[d]"),
            "",
        ),
        (
            _DOT,
            _DOT
            + " float now[8]; now[j % 8] = s; "
            + _DOT.replace("keys[j * 8 + d]", "(keys[j * 8 + d] * now[d])"),
            "",
        ),
        ("float a[12];", "float a[12] = {1.0f};", "plain array"),
        ("float a[12];", "float a[12][2];", ""),
        ("float a[12];", "int a[12];", "not hold floats"),
        (_LOOP, "int j = 0; j < m; j += 2", "count up"),
        (_LOOP, "int j = i - 1; j < (unsigned)m; j++", "is not an int"),
        (_LOOP, "int j = i; j < m && j < (unsigned)n; j++", "not an int"),
        (_LOOP, "int j = 0; j < (long long)m; j++", "not an int"),
        (_LOOP, "int j = 0; j < m - (int)top; j++", "changes"),
        ("if (i >= n) return;", "if (i >= n) return;\n    if (few[i]) return;", ""),
        ("const float* v", "float* v", ""),
    ],
)
def test_rows_that_are_not_certain_to_be_weighed_stay(old: str, new: str, why: str) -> None:
    text = ATTENTION.replace(old, new)
    assert text != ATTENTION
    if old.startswith("const float"):
        text = text.replace("out[i * 12 + e] = ", "v[i * 12 + e] = ")
    assert why in refused(by_tiles(kernel_of(text)))
