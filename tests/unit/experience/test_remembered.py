"""Ideas in the light of what won on kernels of the same kind."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic.model.experience import NOTHING_KNOWN, Entry, Known, Move, known
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.proposers.remembered import remembered
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.source.program import parse_program
from tests.ideas import view_of
from tests.present import examples

from .entries import entry, kind
from .trajectories import KERNEL, step

SCALE = """\
#pragma optiml launch scale grid(cdiv(n, 64)) block(64)
__global__ void scale(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = a[i] * 1.5f;
}
"""
FIRST, OTHER = "tile 0 copy", "rows 0 warp"


def idea(move: str, prior: float = 0.5) -> Idea:
    return Idea(move, move.split(maxsplit=1)[0], lambda: KERNEL, move, prior=prior, move=move)


def from_(*entries: Entry) -> Known:
    return known(kind(), "events", [], entries)


def order(ideas: list[Idea], told: Known, view: View | None = None) -> list[str]:
    found = remembered(ideas, view or view_of(KERNEL), told)
    assert all(0 < one.prior <= 1 for one in found)
    return [one.move for one in sorted(found, key=lambda one: -one.prior)]


def test_without_experience_nothing_changes() -> None:
    ideas = [idea(FIRST), idea(OTHER)]
    assert remembered(ideas, view_of(KERNEL), NOTHING_KNOWN) == ideas
    assert remembered(ideas, view_of(KERNEL), from_(entry("gone 0 x"))) == ideas


def test_the_move_that_won_comes_first_and_what_was_vain_last() -> None:
    ideas = [idea("block 0 x", 0.9), idea(OTHER, 0.93), idea(FIRST, 0.2)]
    assert order(ideas, from_(entry(FIRST, vain=((OTHER,),)))) == [FIRST, "block 0 x", OTHER]
    assert order(ideas, from_(entry(vain=((OTHER,),)))) == ["block 0 x", OTHER, FIRST]


def test_a_path_is_followed_from_where_it_leads() -> None:
    root = step(0, 8.0, parent=None)
    one, two = step(1, 4.0, FIRST), step(2, 4.0, OTHER)
    ideas = [idea("block 0 x", 0.9), idea("float 0 y", 0.3)]
    path = from_(entry(FIRST, "float 0 y"))
    assert order(ideas, path, View(one, root, path=(root, one)))[0] == "float 0 y"
    for view in (View(two, root, path=(root, two)), View(root, root, path=(root,))):
        assert order(ideas, path, view)[0] == "block 0 x"


def test_texts_begin_with_the_numbers_of_the_same_sizes_and_not_of_others() -> None:
    (found,) = RuleProposer([BlockSize()]).propose(view_of(SCALE), 16).ideas

    def begun(entry: Entry) -> tuple[int, tuple[int, ...]]:
        (told,) = remembered([found], view_of(SCALE), from_(entry))
        text = told.make()
        assert isinstance(text, str)
        return parse_program(text).values["BLOCK"], tuple(s["BLOCK"] for s in told.starts)

    own = tuple(start["BLOCK"] for start in found.starts)
    won = Move(found.move, {"BLOCK": 512})
    assert begun(entry(won)) == (512, own)
    assert begun(entry(won, of=kind(11, 6, 5))) == (own[0], (512, *own))
    # What no block can be, what the rule does not offer, and a name that it does not have.
    for point in ({"BLOCK": 4096}, {"BLOCK": 96}, {"OTHER": 64}):
        assert begun(entry(Move(found.move, point)))[0] == own[0]


def test_a_rule_that_refuses_late_still_does() -> None:
    refusal = Refusal("tile", "not here")
    refusing = replace(idea(FIRST), make=lambda: refusal)
    (told,) = remembered([refusing], view_of(KERNEL), from_(entry(Move(FIRST, {"A": 2}))))
    assert told.make() == refusal


@settings(max_examples=examples(30, 2000), deadline=None)
@given(
    st.lists(st.lists(st.sampled_from("abc"), max_size=3), max_size=4),
    st.lists(st.tuples(st.sampled_from("abc"), st.floats(0.01, 1.0)), max_size=5),
)
def test_whatever_is_known_every_idea_stays_and_keeps_a_chance(paths, offered) -> None:
    entries = [
        entry(*(f"{one} 0 x" for one in path), program=str(at), gain=1.5 + at)
        for at, path in enumerate(paths)
    ]
    ideas = [idea(f"{rule} 0 x", prior) for rule, prior in offered]
    found = remembered(ideas, view_of(KERNEL), from_(*entries))
    assert [one.move for one in found] == [one.move for one in ideas]
    assert all(0 < one.prior <= 1 for one in found)


@pytest.mark.parametrize("near", [0, 1, 3])
def test_the_nearer_the_kind_the_surer_the_move(near: int) -> None:
    def prior(apart: int) -> float:
        (found,) = remembered(
            [idea(FIRST, 0.3)], view_of(KERNEL), from_(entry(FIRST, of=kind(10 + apart, 6, 5)))
        )
        return found.prior

    assert 0.3 < prior(near + 1) < prior(near)
