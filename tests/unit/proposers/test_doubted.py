"""Arithmetic that was wrong in a search: what else changes it so, and what does not."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea, Ready
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.proposers.doubted import doubted
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.proposers.together import ALONG
from tests.ideas import view_of
from tests.unit.proposers.views import step

WRONG = Verdict(Outcome.WRONG, "1 element is wrong")
RATIOS = """\
#pragma optiml launch ratios grid(cdiv(n, 256)) block(256)
__global__ void ratios(const float* a, const float* b, float* c, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) c[i] = expf(-a[i]) / b[i];
}
"""
QUOTIENTS, EXPONENTIALS = "divisions by approximate reciprocals", "fast exponentials and logarithms"


def after(*words: str, rule: str = "fast_functions", verdict: Verdict = WRONG) -> Step:
    """A step that changed such arithmetic."""
    one = step(number=1, verdict=verdict)
    edit = replace(one.candidate.proposal, proposer=rule, arithmetic=words)
    return replace(one, candidate=replace(one.candidate, proposal=edit))


def idea(*words: str) -> Idea:
    return Idea("an edit", "a rule", Ready(""), "key", prior=0.8, arithmetic=words)


def priors(*steps: Step) -> list[float]:
    ideas = [idea(QUOTIENTS), idea(EXPONENTIALS), idea(EXPONENTIALS, QUOTIENTS), idea()]
    return [one.prior for one in doubted(ideas, steps)]


def test_what_changes_arithmetic_that_was_wrong_has_half_the_chance() -> None:
    assert priors(after(QUOTIENTS)) == [0.4, 0.8, 0.4, 0.8]
    assert priors(after(QUOTIENTS, EXPONENTIALS)) == [0.8, 0.8, 0.4, 0.8]


def test_an_edit_that_did_more_says_nothing_of_arithmetic() -> None:
    assert priors(after(QUOTIENTS, rule="vectorise_map")) == [0.8] * 4
    assert priors(after(QUOTIENTS, verdict=Verdict(Outcome.PASSED, "right"))) == [0.8] * 4
    assert priors(after()) == [0.8] * 4


def test_a_shape_that_is_right_by_itself_was_not_what_was_wrong() -> None:
    order = "the order of additions"

    def tried(title: str, *words: str, verdict: Verdict, parent: int | None = 0) -> Step:
        one = after(*words, rule=ALONG if "; " in title else "row_to_lanes", verdict=verdict)
        edit = replace(one.candidate.proposal, title=title)
        return replace(one, candidate=replace(one.candidate, proposal=edit, parent=parent))

    both = tried("share rows: LANES = 4; use fast ones", order, EXPONENTIALS, verdict=WRONG)
    right = Verdict(Outcome.PASSED, "right")
    shape = tried("share rows: LANES = 4", order, verdict=right)
    assert priors(both) == [0.8] * 4
    assert priors(both, shape) == [0.8, 0.4, 0.4, 0.8]
    assert priors(both, tried("share rows: LANES = 8", order, verdict=right)) == [0.8] * 4
    assert priors(both, tried("share rows: LANES = 4", order, verdict=WRONG)) == [0.8] * 4
    elsewhere = tried("share rows: LANES = 4", order, verdict=right, parent=3)
    assert priors(both, elsewhere) == [0.8] * 4


def test_shapes_go_along_with_what_was_not_wrong() -> None:
    view = view_of(RATIOS)
    (before, *_) = RuleProposer().propose(view, 0).ideas
    assert before.proposer == ALONG
    assert {QUOTIENTS, EXPONENTIALS} <= {*before.arithmetic}
    for wrong in (after(QUOTIENTS, EXPONENTIALS), after(QUOTIENTS)):
        view = replace(view, evaluated=(*view.evaluated, wrong))
    found = [i for i in RuleProposer().propose(view, 0).ideas if i.proposer == ALONG]
    assert found
    assert all(EXPONENTIALS in i.arithmetic and QUOTIENTS not in i.arithmetic for i in found)
