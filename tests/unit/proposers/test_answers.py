"""Which finding a rule's proposal answers, and what it then promises."""

from __future__ import annotations

from dataclasses import replace

import pytest

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.finding import Action, Evidence, Finding
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rewrites.base import answering
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.testing.kernels import NAMES, known_task
from tests.ideas import asked, view_of

OWN = Hypothesis("loads", "lower", "staged", (2.0, 8.0))


def finding(tool: str, *actions: Action) -> Finding:
    return Finding(tool, "warning", "because", (), actions, (1.0, 2.0))


def proposed(*findings: Finding) -> Idea:
    idea = Idea.of(Proposal("text", "title", "transpose_tile", "why", OWN, prior=0.5))
    return answering(idea, findings)


def test_a_rule_that_nobody_asked_for_answers_nothing() -> None:
    found = proposed(finding("other", Action("try", "block_size", "waves", "higher")))
    assert (found.answers, found.hypothesis, found.prior) == ("", OWN, 0.5)


@pytest.mark.parametrize(("prior", "lifted"), [(0.5, 0.75), (0.2, 0.6), (0.12, 0.36), (0.9, 0.95)])
def test_what_is_unlikely_stays_so(prior: float, lifted: float) -> None:
    one = replace(proposed(), prior=prior)
    asks = finding("stores", Action("try", "transpose_tile"))
    assert answering(one, [asks]).prior == lifted


def test_the_metric_of_the_action_is_what_will_be_tested() -> None:
    found = proposed(
        finding("stores", Action("try", "transpose_tile", "stores", "lower", (4.0, 8.0)))
    )
    assert (found.answers, found.prior) == ("stores", 0.75)
    assert found.hypothesis == Hypothesis("stores", "lower", "staged", (4.0, 8.0))


def test_of_several_findings_the_one_that_expects_the_same_is_answered() -> None:
    found = proposed(
        finding("stores", Action("try", "transpose_tile", "stores")),
        finding("loads", Action("try", "transpose_tile", "loads")),
    )
    assert (found.answers, found.hypothesis) == ("loads", OWN)


def test_an_action_without_a_metric_leaves_the_promise_to_the_rule() -> None:
    found = proposed(finding("reuse", Action("try", "transpose_tile")))
    assert (found.answers, found.hypothesis) == ("reuse", OWN)


CHAIN = """\
#pragma optiml launch twice grid(cdiv(n, 256)) block(256)
#pragma optiml launch sum grid(cdiv(n, 64)) block(64)
__device__ float half_of(float x) { return 0.5f * x; }
__global__ void twice(float* a, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= 2.0f;
}
__global__ void sum(const float* a, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = half_of(a[i]);
}
"""


@pytest.mark.parametrize(
    ("lines", "lifted"),
    [
        ((0,), {"twice", "sum"}),
        ((3,), {"twice", "sum"}),  # a function that any kernel may call
        ((1,), {"twice"}),
        ((6,), {"twice"}),
        ((2,), {"sum"}),
        ((10,), {"sum"}),
        ((6, 10), {"twice", "sum"}),
        ((0, 10), {"sum"}),
    ],
)
def test_a_finding_about_a_launch_asks_for_edits_of_that_one(
    lines: tuple[int, ...], lifted: set[str]
) -> None:
    evidence = tuple(Evidence("sectors", 32.0, 6.0, "sector", "emulated", n) for n in lines)
    asks = (Action("try", "block_size", "waves", "higher"),)
    found = Finding("tail", "warning", "because", evidence, asks, (1.0, 2.0))
    view = view_of(CHAIN)
    evaluation = replace(view.step.evaluation, findings=(found,))
    ideas = RuleProposer().propose(replace(view, step=replace(view.step, evaluation=evaluation)), 9)
    own = [idea for idea in ideas.ideas if idea.proposer == "block_size"]
    assert {idea.launches for idea in own} == {("twice",), ("sum",)}
    assert {idea.launches[0] for idea in own if idea.answers} == lifted


def test_every_rule_promises_a_metric_a_direction_and_how_far() -> None:
    promised: dict[str, Hypothesis] = {}
    for name in NAMES:
        for rule in REWRITES:
            for found in asked(rule, known_task(name).text)[0]:
                assert found.hypothesis is not None
                promised[rule.name] = found.hypothesis
                low, high = found.hypothesis.factor
                assert 1.0 <= low <= high
                assert high > 1.0
                assert found.hypothesis.metric.count("__") >= 1  # ncu's names have a unit first
    assert {"coalesce_mapping", "transpose_tile", "row_to_lanes", "block_size"} <= set(promised)
