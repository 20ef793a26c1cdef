"""Which finding a rule's proposal answers, and what it then promises."""

from __future__ import annotations

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.finding import Action, Finding
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rewrites.base import answering
from optiml_magic.testing.kernels import NAMES, known_task
from tests.ideas import asked

OWN = Hypothesis("loads", "lower", "staged", (2.0, 8.0))


def finding(tool: str, *actions: Action) -> Finding:
    return Finding(tool, "warning", "because", (), actions, (1.0, 2.0))


def proposed(*findings: Finding) -> Idea:
    idea = Idea.of(Proposal("text", "title", "transpose_tile", "why", OWN, prior=0.5))
    return answering(idea, findings)


def test_a_rule_that_nobody_asked_for_answers_nothing() -> None:
    found = proposed(finding("other", Action("try", "block_size", "waves", "higher")))
    assert (found.answers, found.hypothesis, found.prior) == ("", OWN, 0.5)


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
