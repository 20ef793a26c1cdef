"""Extremes that are selected under other tests: a branch for each, the same results."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.own_tests import own_tests
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from tests.ideas import asked
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

ROWS = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, const int* taken, float* out, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float best = -9; int at = -1;
    for (int j = 0; j < m; ++j) {
        float v = x[i * m + j];
        bool mine = taken[j] != (i & 3);
        %s
    }
    out[i] = best + 100 * at;
}
"""
TAKE = "{ best = v; at = j; }"
ARRAYS = {"x": Array("f4", ("n", "m"), "odd"), "taken": Array("i4", ("max(n, m)",)),
          "out": Array("f4", ("n * 8",), "zeros")}  # fmt: skip
PARTED = {
    "mine first": f"if (mine && v > best) {TAKE}",
    "the comparison first": f"if (v > best && mine) {TAKE}",
    "in between": f"if (mine && v > best && j != i) {TAKE}",
    "a load first": f"if (taken[j] > 1 && v >= best) {TAKE}",
    "the least of the opposite": f"if (mine && !(v <= best)) {TAKE}",
    "no braces": "if (mine && best < v) best = v;",
}


@pytest.mark.parametrize("name", PARTED)
def test_each_test_is_a_branch_of_its_own(name: str) -> None:
    before = ROWS % PARTED[name]
    after = written(own_tests(kernel_of(before)))
    assert after.count("if (") == before.count("if (") + 1
    assert end_of(before, after, ARRAYS, {"n": 13, "m": 70}, {"n": 1, "m": 3}) == "same"


STAY = {
    "one test": f"if (v > best) {TAKE}",
    "either": f"if (mine || v > best) {TAKE}",
    "what is behind may not be asked": f"if (v > best && taken[j] > 1) {TAKE}",
    "it divides": f"if (v > best && 7 / m > 1) {TAKE}",
    "another way": f"if (mine && v > best) {TAKE} else at = 0;",
    "nothing is compared": "if (mine && j > 3) { best = v; at = j; }",
    "it changes something": f"if (v > best && (at = 1)) {TAKE}",
}


@pytest.mark.parametrize("name", STAY)
def test_branches_that_stay(name: str) -> None:
    assert refused(own_tests(kernel_of(ROWS % STAY[name])))


PASSES = """\
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int* where, int n, int m) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    for (int k = 0; k < 3; ++k) {
        float best = -9; int at = -1;
        for (int j = 0; j < m; ++j) {
            float v = x[i * m + j];
            bool taken = false;
            for (int t = 0; t < k; ++t) if (where[i * 3 + t] == j) taken = true;
            if (!taken && v > best) { best = v; at = j; }
        }
        out[i * 3 + k] = best; where[i * 3 + k] = at;
    }
}
"""


@pytest.mark.parametrize("swap", [
    ("v > best", "v > best"), ("v > best", "v >= best"), ("x[i * m + j]", "-x[i * m + j]"),
    ("!taken && v > best", "v > best && !taken"), ("if (!taken", "if (taken) continue; if (true"),
])  # fmt: skip
def test_lanes_share_each_pass_over_a_row(swap: tuple[str, str]) -> None:
    text = PASSES.replace(*swap)
    arrays = {"x": Array("f4", ("n", "m"), "odd"), "out": Array("f4", ("n * 3",), "zeros"),
              "where": Array("i4", ("n * 3",), "zeros")}  # fmt: skip
    found, _ = asked(RowToLanes(), text)
    made = [idea for idea in found if "share the loop over j" in idea.title]
    assert made
    for idea in made:
        after = idea.make()
        assert isinstance(after, str), after
        assert idea.arithmetic == ()
        assert end_of(text, after, arrays, {"n": 13, "m": 170}, {"n": 1, "m": 3}) == "same"


def test_passes_that_leave_more_behind_are_not_shared() -> None:
    text = PASSES.replace("best = v; at = j;", "best = v; at = j; where[i * 3 + 2] = j;")
    found, _ = asked(RowToLanes(), text)
    assert not [idea for idea in found if "share the loop over j" in idea.title]
