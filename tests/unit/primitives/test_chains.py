"""Sums in parts, whose additions do not wait for each other."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.chains import split_chains
from optiml_magic.proposers.rewrites.unroll_static import UnrollStatic
from tests.ideas import asked

from .running import same
from .shapes import applied, kernel, refused

DOT = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* a, const float* b, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int j = 0; j < 3; ++j) {
        float s = 0.5f;
        for (int c = 0; c < 32; ++c) s += a[i * 32 + c] * b[j * 32 + c];
        out[i * 3 + j] = s;
    }
}
"""
SHAPES = {"a": ("n", "32"), "b": ("3", "32"), "out": ("n", "3")}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("for (int c", "#pragma unroll 8\n        for (int c"),
        ("int c = 0; c < 32; ++c", "unsigned c = 0; c < 16; c++"),
        ("s += a[i * 32 + c] * b[j * 32 + c];",
         "{ float v = a[i * 32 + c]; if (v < 0.0f) v = -v; s += v * b[j * 32 + c]; }"),
        ("float s = 0.5f", "double s = 0.5"),
    ],
)  # fmt: skip
def test_a_sum_in_four_parts(old: str, new: str) -> None:
    text = DOT.replace(old, new, 1)
    made = split_chains(kernel(text))
    shown = applied(made).program.text
    assert "s_parts[4] = {};" in shown
    assert "s += (s_parts[0] + s_parts[1]) + (s_parts[2] + s_parts[3]);" in shown
    assert ("#pragma unroll 8" if "unroll 8" in new else "#pragma unroll\n") in shown
    same(text, made, SHAPES, {"n": 70}, rounds=True)


def test_two_sums_of_a_loop() -> None:
    text = DOT.replace("float s = 0.5f", "float s = 0.5f, t = 1.0f").replace("= s;", "= s + t;")
    text = text.replace("s += a[", "{ t += b[c]; s += a[").replace("* 32 + c];", "* 32 + c]; }")
    made = split_chains(kernel(text))
    assert "t += (t_parts[0] + t_parts[1])" in applied(made).program.text
    same(text, made, SHAPES, {"n": 70}, rounds=True)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("c < 32", "c < n"),
        ("c < 32", "c < 30"),
        ("c < 32", "c < 12"),
        ("++c", "c += 2"),
        ("s += a", "s = s * 0.5f + a"),
        ("s += a[", "s += s * a["),
        ("float s = 0.5f", "int s = 0"),
        ("s += a[i * 32 + c] * b[j * 32 + c];", "{ s += a[c]; if (s > 9.0f) break; }"),
        ("s += a[i * 32 + c] * b[j * 32 + c];", "{ s += a[c]; out[i * 3] = s; }"),
    ],
)
def test_sums_that_stay(old: str, new: str) -> None:
    assert old in DOT
    assert refused(split_chains(kernel(DOT.replace(old, new))))[0] == "no short loop sums up"


def test_the_rule_says_that_the_order_changes() -> None:
    ideas, _ = asked(UnrollStatic(), DOT)
    (idea,) = (i for i in ideas if "side by side" in i.title)
    assert idea.title == "4 sums side by side for s"
    assert idea.arithmetic == ("the order of additions",)
