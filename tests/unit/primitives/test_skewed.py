"""Sweeps along a thread's own array, several of them at once."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.skewed import skewed
from optiml_magic.proposers.rewrites.skew_sweeps import SkewSweeps
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

HEAD = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* y, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float v[24];
    for (int j = 0; j < 24; j++) v[j] = j < m ? x[i * m + j] : 0.5f * j;
    float least = 9.0f;
    %s
    for (int j = 0; j < m; j++) y[i * m + j] = v[j];
}
"""
ARRAYS = {"x": Array("f4", ("n", "m")), "y": Array("f4", ("n", "m"))}
SIZES = ({"n": 70, "m": 23}, {"n": 3, "m": 2})
SWEEPS = {
    "prices": "for (int t = m - 1; t >= 0; t--) for (int j = 0; j < t; j++) v[j] = 0.5f * v[j + 1] + 0.25f * v[j];",
    "whole rows": "for (int t = 0; t < 9; ++t) for (int j = 0; j < m; ++j) v[j] = 0.5f * v[j + 1] + 0.25f * v[j];",
    "growing": "for (int t = 0; t < 9; ++t) for (int j = 1; j <= t; ++j) v[j] = 0.5f * v[j - 1] + v[j];",
    "distances": (
        "for (int t = 1; t <= m; ++t) { float diag = v[0]; v[0] = t; for (int j = 1; j < m; ++j) {"
        " float up = v[j]; float best = diag + (x[i * m + t - 1] < x[i * m + j] ? 0.5f : 1.0f);"
        " if (up + 1 < best) best = up + 1; if (v[j - 1] + 1 < best) best = v[j - 1] + 1;"
        " v[j] = best; diag = up; } }"
    ),
    "differences": (
        "for (int k = 1; k < m; ++k) for (int j = m - 1; j >= k; --j)"
        " v[j] = (v[j] - v[j - 1]) * x[i * m + j - k];"
    ),
    "neighbours change places": (
        "for (int t = 0; t < m; ++t) for (int j = 0; j + 1 < m - t; ++j)"
        " if (v[j] > v[j + 1]) { float c = v[j]; v[j] = v[j + 1]; v[j + 1] = c; }"
    ),
    "both sides": "for (int t = 0; t < 7; ++t) for (int j = 2; j < 22; ++j) v[j] = v[j - 2] - 0.5f * v[j + 1] + v[j];",
    "each by itself": "for (int t = 0; t < m; t += 2) for (int j = 0; j < m; ++j) v[j] = v[j] * 0.5f + x[i * m + t];",
    "none of the last": "for (int t = 0; t < m; ++t) for (int j = 0; j < m - 2 * t; ++j) v[j] = v[j] * 0.5f + x[i * m + t];",
    "two arrays": (
        "float e[24]; for (int j = 0; j < 24; ++j) e[j] = 0.25f * j; for (int t = 1; t < m; ++t) { float f = 0.0f, diag = v[0];"
        " for (int j = 1; j < m; ++j) { float up = v[j]; e[j] = fmaxf(e[j] - 0.25f, up - 1.0f); f = fmaxf(f - 0.25f, v[j - 1] - 1.0f);"
        " float h = fmaxf(fmaxf(diag + x[i * m + j], e[j]), f); least = fminf(least, h); diag = up; v[j] = h; } } v[0] = least + e[1];"
    ),
    "two directions": (
        "float e[24]; for (int j = 0; j < 24; ++j) e[j] = 0.25f * j; for (int t = 0; t < 9; ++t)"
        " for (int j = 0; j < 20; ++j) { e[21 - j] += v[j]; v[j] = 0.5f * v[j + 2] + e[22 - j]; } v[23] = e[5];"
    ),
    "without a sign": "unsigned k = m; for (unsigned t = 0; t < 9; ++t) for (unsigned j = 0; j + 3 * t < k; ++j) v[j] = 0.5f * v[j + 1] + v[j];",
    "hints": (
        "\n#pragma unroll 2\nfor (int t = 0; t < m; ++t) { float last = 0.0f;\n#pragma unroll\n"
        "for (int j = 0; j < 20; ++j) { v[j] += 0.25f * last; last = v[j + 1]; } }"
    ),
    "two steps a sweep": "for (int t = m; t > 0; t -= 2) for (int j = 0; j < t; ++j) v[j] = 0.5f * v[j + 1] + 0.25f * v[j];",
    "something behind": (
        "for (int t = 0; t < m; ++t) { float s = 0.0f; for (int j = 0; j < m; ++j) { v[j] += 0.5f * v[j + 1]; s += v[j]; }"
        " least = fminf(least, s); } y[i * m] = least;"
    ),
    "the greatest of all": (
        "float best = 0.0f; for (int t = 0; t < m; ++t) for (int j = 1; j < m; ++j) {"
        " v[j] = fmaxf(0.0f, fmaxf(v[j - 1] - 0.25f, 0.5f * v[j] + x[i * m + t])); best = fmaxf(best, v[j]); }"
        " v[0] = best;"
    ),
}  # fmt: skip


@pytest.mark.parametrize("count", [2, 4, 8])
@pytest.mark.parametrize("body", SWEEPS.values(), ids=SWEEPS)
def test_several_sweeps_follow_each_other(body: str, count: int) -> None:
    text = HEAD % body
    made = written(skewed(kernel_of(text), 0, count))
    assert "v_near" in made
    assert end_of(text, made, ARRAYS, *SIZES) == "same"


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("for (int t = 0; t < m; ++t) for (int j = 0; j < m; ++j) least = fminf(least, v[j]);", "in its rounds"),
        ("for (int t = 0; t < m; ++t) for (int j = 0; j < m; ++j) v[j] = v[23 - j];", "in several ways"),
        ("for (int t = 0; t < m; ++t) for (int j = 0; j < m; ++j) v[j] += v[(int)x[j] & 7];", "one element on"),
        ("for (int t = 0; t < m; ++t) for (int j = 0; j < m; ++j) { v[j] += v[j + 1]; least -= v[j]; }", "from sweep to sweep"),
        ("for (int t = 0; t < m; ++t) { for (int j = 0; j < m; ++j) v[j] += v[j + 1]; if (v[0] > 3.0f) break; }", "count in its head alone"),
        ("for (int t = 0; t < m; ++t) { for (int j = 0; j < m; ++j) v[j] += v[j + 1]; v[m] = t; }", "asks for its array"),
        ("for (int t = 0; t < m; ++t) { v[3] = t; for (int j = 0; j < m; ++j) v[j] += v[j + 1]; }", "comes ahead"),
        ("for (int t = 0; t < m; ++t) for (int j = 0; j < m; ++j) { v[j] += v[j + 1]; y[i * m + j] = t; }", "store elsewhere"),
        ("for (int t = 0; t < 9; ++t) for (int j = t; j < m; ++j) v[j] += v[j + 1];", "sweeps begin in several places"),
        ("for (int t = 0; t < m; ++t) for (int j = 0; j < m; j += 2) v[j] += v[j + 1];", "leaves elements out"),
        ("for (int t = 0; t < m; ++t) for (int j = 0; j < 24; ++j) v[j] += j < 23 ? v[j + 1] : 0.0f;", "elements beside it"),
        ("for (int t = 0; t < m; ++t) { int low = m / 9; for (int j = low; j < m; ++j) v[j] += v[j + 1]; }", "where a sweep begins"),
        ("float* p = v; for (int t = 0; t < m; ++t) for (int j = 0; j < m; ++j) v[j] += p[j + 1];", "array"),
    ],
)  # fmt: skip
def test_what_may_meet_stays_in_order(body: str, why: str) -> None:
    assert why in refused(skewed(kernel_of(HEAD % body), 0, 4))


def test_what_all_sweeps_load_alike_is_loaded_once() -> None:
    made = written(skewed(kernel_of(HEAD % SWEEPS["distances"]), 0, 4))
    assert "x_near[(SWEEPS - 1)] = x[i * m + j];" in made


def test_a_tree_of_prices_is_offered_by_how_long_its_sweeps_are() -> None:
    text = (HEAD % SWEEPS["prices"]).replace("m - 1", "99").replace("24", "128")
    (idea,), _ = asked(SkewSweeps(), text)
    assert idea.title == "several sweeps along v at once, an element apart each: SWEEPS = 16"
    made = idea.make()
    assert isinstance(made, str)
    assert end_of(text, made, ARRAYS, *SIZES) == "same"


def test_sums_side_by_side_are_left_to_the_compiler() -> None:
    sums = "float s[4] = {}; for (int k = 0; k < m; ++k) for (int q = 0; q < 4; ++q) s[q] += x[i * m + k] * q; v[0] = s[3];"
    assert asked(SkewSweeps(), HEAD % sums) == ([], [])
    many = sums.replace("s[4]", "s[200]").replace("q < 4", "q < 200")
    (idea,), _ = asked(SkewSweeps(), HEAD % many)
    assert idea.title == "several sweeps along s at once: SWEEPS = 8"
