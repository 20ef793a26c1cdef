"""Loops as long as data say: what is offered, and where lanes would gain nothing."""

from __future__ import annotations

from optiml_magic.proposers.rewrites.lend_lanes import LendLanes
from tests.ideas import asked

LEVEL = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const int* start, const int* col, int* level, int* next, int* changed, int depth, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n && level[i] == depth) {
        for (int e = start[i]; e < start[i + 1]; ++e) {
            if (level[col[e]] == -1) {
                next[col[e]] = depth + 1;
                *changed = 1;
            }
        }
    }
}
"""
COMMON = """\
#pragma optiml launch k grid(cdiv(n, 256)) block(256)
__global__ void k(const unsigned* rows, const int* pair, unsigned long long* all, int n, int words) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    if (pair[i] > 0) {
        int common = 0;
        for (int w = 0; w < words; ++w) common += __popc(rows[i * words + w] & rows[w]);
        atomicAdd(all, (unsigned long long)common);
    }
}
"""


def test_a_search_by_levels_and_sparse_pairs_are_shared(propose, compiles):
    for text, starts in ((LEVEL, 3), (COMMON, 1)):
        found = propose("lend_lanes", text)
        assert len(found) == starts
        assert "__ballot_sync" in found[0].text
        compiles(found[0].text)


def test_loops_that_are_alike_for_a_whole_warp_are_left_alone():
    assert asked(LendLanes(), COMMON.replace("pair[i] > 0", "words > 2")) == ([], [])
    assert asked(LendLanes(), COMMON.replace("w < words", "w < 4")) == ([], [])


def test_sums_of_floats_say_that_their_order_changes():
    (idea,), _ = asked(LendLanes(), COMMON)
    assert idea.arithmetic == ()
    floats = COMMON.replace("int common", "float common").replace("unsigned long long", "float")
    (idea,), _ = asked(LendLanes(), floats)
    assert idea.arithmetic == ("the order of additions",)
