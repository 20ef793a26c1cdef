"""What is advised against sectors that nobody asked for, by what the line says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.findings.uncoalesced import UncoalescedAccess
from optiml_magic.model.counters import KernelCounters, MemoryCounters
from optiml_magic.model.finding import Finding
from optiml_magic.model.launch import Launch, LaunchPlan
from optiml_magic.model.measurement import Measurement

from .test_subject import subject

TEXT = """\
__global__ void k(const P* p, const float* x, const int* at, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    HEAD out[i] = LOAD;
}
"""


def found(load: str, more: str = "", *, head: str = "") -> Finding:
    site = MemoryCounters(3, "global", "load", 4, 1000, 16000, 1000, 4000, 32000, 16000)
    counts = KernelCounters("k", 9000, 9000 * 32, {}, {}, (site,), (), 0, None, None, None, None)
    measured = Measurement("h200", "events", 1e-5, 1.01, (), (), (counts,))
    of = subject(TEXT.replace("LOAD", load).replace("HEAD", head) + more, measured=measured)
    plan = LaunchPlan((Launch("k", (64, 1, 1), (256, 1, 1), 0, ()),))
    (finding,) = UncoalescedAccess().diagnose(replace(of, plan=plan))
    return finding


@pytest.mark.parametrize("load", ["p[i].mass", "p[i]->mass", "x[2 * i]", "x[i*7 + 3]"])
def test_fields_are_advised_an_array_each(load: str) -> None:
    actions = found(load).actions
    assert "field" in actions[0].advice
    assert not [a for a in actions if a.rewrite == "row_to_lanes"]


def test_a_gather_is_advised_an_order() -> None:
    assert found("x[at[i]]").actions[0].advice.startswith("Order the work by the index")


@pytest.mark.parametrize("load", ["x[i * n + 3]", "x[i * 1024 + 3]", "x[(i % n) * 64]"])
def test_others_are_advised_another_mapping(load: str) -> None:
    rules = [action.rewrite for action in found(load).actions]
    assert rules == ["coalesce_mapping", "transpose_tile", ""]
    looping = found(load, head="for (int j = 0; j < n; ++j)").actions
    assert [a.rewrite for a in looping][:2] == ["coalesce_mapping", "row_to_lanes"]


@pytest.mark.parametrize(
    ("head", "more"),
    [("", "__global__ void j() { for (;;) {} }\n"), ("for (int j = 0; j < n; ++j) n += j;", "")],
)
def test_a_warp_is_advised_only_for_a_loop_around_the_access(head: str, more: str) -> None:
    rules = [action.rewrite for action in found("x[i * n]", more, head=head).actions]
    assert rules == ["coalesce_mapping", "transpose_tile", ""]


def test_an_index_is_followed_to_where_it_comes_from() -> None:
    gathered = found("x[k]", head="int k = at[i];").actions
    assert gathered[0].advice.startswith("Order the work by the index")
    assert "field" in found("x[k + 1]", head="int k = 4 * i;").actions[0].advice
    assert "field" in found("q->mass", head="const P* q = p + i;").actions[0].advice


def test_a_row_that_begins_where_an_array_says_is_no_gather() -> None:
    rules = [
        action.rewrite
        for action in found("x[k]", head="for (int k = at[i]; k < at[i + 1]; ++k)").actions
    ]
    assert rules[:2] == ["coalesce_mapping", "row_to_lanes"]


SEARCH = (
    "for (int k = 0; k < n; ++k) { int low = at[i], high = at[i + 1]; while (low LESS high) {"
    " int mid = HALF; if (x[mid] < k) low = mid + 1; else high = mid; } }"
)


@pytest.mark.parametrize(
    ("less", "half", "first"),
    [
        ("<", "(low + high) / 2", "hold_list"),
        ("<=", "low + (high - low) / 2", "hold_list"),
        ("<", "low + 2", "coalesce_mapping"),
    ],
)
def test_lists_that_are_searched_are_held(less: str, half: str, first: str) -> None:
    head = SEARCH.replace("LESS", less).replace("HALF", half)
    assert found("n", head=head).actions[0].rewrite == first
    alone = head.replace("for (int k = 0; k < n; ++k) {", "{ int k = 3;")
    assert "hold_list" not in [action.rewrite for action in found("n", head=alone).actions]
