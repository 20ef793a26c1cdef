"""Sums by group: what the rule offers, and where it says why not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from optiml_magic.proposers.rewrites.scatter_rounds import ScatterRounds
from tests.ideas import asked

GROUPS = """
#pragma optiml launch k grid(cdiv(g, 64)) block(64)
__global__ void k(const int* key, const float* x, float* sums, int* counts, int n, int g) {
    int j = blockIdx.x * blockDim.x + threadIdx.x;
    if (j >= g) return;
    float s = 0.0f;
    int c = 0;
    for (int i = 0; i < n; i++)
        if (key[i] == j) { s += x[i]; c++; }
    sums[j] = s;
    counts[j] = c;
}"""
BLOCKS = """
#pragma optiml launch k grid(g) block(128)
__global__ void k(const int* key, const float* x, float* mean, int n, int g) {
    __shared__ float part[128];
    int t = threadIdx.x;
    float s = 0.0f;
    for (int i = t; i < n; i += 128)
        if (key[i] == blockIdx.x) s += x[i];
    part[t] = s;
    __syncthreads();
    for (int half = 64; half > 0; half /= 2) {
        if (t < half) part[t] += part[t + half];
        __syncthreads();
    }
    if (t == 0) mean[blockIdx.x] = part[0] / n;
}"""
BINS = """
#pragma optiml launch k grid(1) block(256)
__global__ void k(const unsigned char* image, int* bins, int n) {
    int count = 0;
    for (int i = 0; i < n; i++) count += image[i] == threadIdx.x;
    bins[threadIdx.x] = count;
}"""


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        (GROUPS, False),
        (GROUPS.replace("if (key[i] == j) { s += x[i]; c++; }", "{ if (key[i] != j) continue; s += x[i]; c++; }"), False),
        (GROUPS.replace("int i = 0; i < n; i++", "int i = n - 1; i >= 0; i--"), False),
        (GROUPS.replace("float s = 0.0f", "int s = 0").replace("float*", "int*"), True),
        (BLOCKS, False),
        (BINS, True),
    ],
)  # fmt: skip
def test_rows_are_read_once_for_all_groups(
    text: str, exact: bool, compiles: Callable[[str], object]
) -> None:
    (idea,), refused = asked(ScatterRounds(), text)
    assert idea.arithmetic == (() if exact else ("the order of additions",))
    assert not refused
    made = idea.make()
    assert isinstance(made, str)
    compiles(made)
    assert made.count("#pragma optiml launch") == 2


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("c++; }", "c++; } else c--;"),
        ("s += x[i];", "s = fmaxf(s, x[i]);"),
        ("key[i] == j", "key[i] + 1 == j && c < 9"),
    ],
)
def test_rounds_of_several_groups_stay(old: str, new: str) -> None:
    ideas, refused = asked(ScatterRounds(), GROUPS.replace(old, new))
    assert not ideas
    assert [one.line > 0 for one in refused] == [True]


@pytest.mark.parametrize("asks", ["key[i] <= j", "key[i] == n", "x[i] > 0.0f"])
def test_where_no_round_asks_for_a_key_it_says_nothing(asks: str) -> None:
    assert asked(ScatterRounds(), GROUPS.replace("key[i] == j", asks)) == ([], [])
