"""What a model plans is written by itself, and its order of ideas is a prior that is tested."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from threading import Barrier, Lock
from typing import Any

import pytest

from optiml_magic.llms.base import LlmFailure, Reply, Request
from optiml_magic.model.evaluation import Step
from optiml_magic.model.idea import Idea, Ideas, Ready
from optiml_magic.model.view import View
from optiml_magic.proposers.asking import Asker
from optiml_magic.proposers.brief import Contents
from optiml_magic.proposers.judge import Agreement, Judge
from optiml_magic.proposers.llm import LlmProposer
from optiml_magic.proposers.mixture import mixed

from .test_llm import BETTER, GOOD, WRONG, draft, edit, says
from .views import SCALE, step, view

SUM = draft(title="a sum", span="out[i] = 2.0f * a[i];", answers="uncoalesced_access")
BLOCKS = draft(title="larger blocks")


class Acting:
    """A model that answers by the question."""

    name = "acting"

    def __init__(self, act: Callable[[str], str | LlmFailure]) -> None:
        self.requests: list[Request] = []
        self._act = act
        self._lock = Lock()

    def complete(self, request: Request) -> Reply | LlmFailure:
        with self._lock:
            self.requests.append(request)
        said = self._act(request.user)
        return Reply(said) if isinstance(said, str) else said


def is_plan(question: str) -> bool:
    return "Plan up to" in question


def planned(question: str) -> str:
    """The title of the plan that a question is about."""
    found = re.search(r"# The plan\n\n(.*)", question)
    return found[1] if found else ""


def test_plans_are_written_at_once_and_keep_their_order_and_their_promise() -> None:
    both = Barrier(2, timeout=20)  # neither is answered before the other is asked

    def act(question: str) -> str:
        if is_plan(question):
            return says(SUM, BLOCKS)
        both.wait()
        if planned(question) == "a sum":
            return says(draft(title="another name", edits=GOOD["edits"], arithmetic=["nothing"]))
        return says(draft(program=SCALE.replace("256}", "256, 512}")))

    llm = Acting(act)
    first, second = LlmProposer(Asker(llm)).propose(view(), 4).ideas
    assert (first.title, first.text, first.prior) == ("a sum", BETTER, 0.6)
    assert first.hypothesis is not None
    assert (first.answers, first.arithmetic) == ("uncoalesced_access", ("nothing",))
    assert (second.title, second.prior) == ("larger blocks", 0.55)
    assert len({request.seed for request in llm.requests}) == 3
    assert [request.temperature for request in llm.requests] == [0.7, 0.2, 0.2]


def test_the_writer_is_told_the_plan_and_the_finding_and_not_what_only_a_planner_needs() -> None:
    llm = Acting(lambda question: says(SUM) if is_plan(question) else says(GOOD))
    (_,) = (
        LlmProposer(Asker(llm), contents=Contents("def f(a): ..."))
        .propose(view(SCALE, step(number=1)), 4)
        .ideas
    )
    plan, write = (request.user for request in llm.requests)
    assert SCALE in write
    assert "def f(a): ..." in write
    assert "It is about these lines:\n\n```cuda\nout[i] = 2.0f * a[i];\n```" in write
    assert "uncoalesced_access: The store on line 6" in write
    assert "It should make sectors.ratio lower." in write
    for title in ("Tried on this program already", "What became of it"):
        assert title in plan
        assert title not in write


def test_a_plan_that_is_declined_or_cannot_be_written_leaves_the_others() -> None:
    def act(question: str) -> str:
        if is_plan(question):
            return says(draft(title="declined"), SUM, draft(title="broken"))
        return {"declined": says(), "a sum": says(GOOD)}.get(planned(question), says(draft()))

    proposer = LlmProposer(Asker(Acting(act)))
    assert [one.title for one in proposer.propose(view(), 4).ideas] == ["a sum"]
    notes = " ".join(proposer.notes)
    assert "`broken`: it gives neither" in notes
    assert "gave up after 2 repairs" in notes
    assert "declined" not in notes


def test_an_endpoint_that_fails_while_plans_are_written_ends_with_a_note() -> None:
    down = LlmFailure("rejected", "nobody there")
    llm = Acting(lambda question: says(SUM, BLOCKS) if is_plan(question) else down)
    proposer = LlmProposer(Asker(llm))
    assert proposer.propose(view(), 4) == Ideas()
    assert sum("nobody there" in note for note in proposer.notes) == 2


def idea(number: int, prior: float = 0.5) -> Idea:
    return Idea(f"edit {number}", "rule", Ready(f"text {number}"), f"key {number}", prior=prior)


def waiting(*ideas: Idea, evaluated: tuple[Step, ...] = ()) -> View:
    return replace(view(), find_queued=lambda: ideas, evaluated=evaluated)


def came(number: int, reward: float | None) -> Step:
    """What became of the idea of this number."""
    one = step(number=number + 10, title=f"edit {number}")
    if reward is None:
        one = step(number=number + 10, title=f"edit {number}", verdict=WRONG)
    proposal = replace(one.candidate.proposal, proposer="rule")
    candidate = replace(one.candidate, proposal=proposal)
    return Step(candidate, replace(one.evaluation, reward=reward or 0.0))


def test_its_order_moves_the_chances_of_what_others_would_try() -> None:
    class Rules:
        name = "rule"

        def propose(self, view: View, count: int) -> Ideas:
            return Ideas((idea(1, 0.5), idea(2, 0.48), idea(3, 0.44)))

    llm = Acting(lambda _: says(waiting=[3, 2, 99, 0, -1]))
    found = mixed((Rules(), LlmProposer(Asker(llm))), view(), 16)
    assert [(one.title, one.prior) for one in found.ideas] == [
        ("edit 3", 0.55),
        ("edit 2", 0.54),
        ("edit 1", 0.4),
    ]
    assert "# What waits to be tried\n\n1. edit 1\n2. edit 2\n3. edit 3" in llm.requests[0].user


@pytest.mark.parametrize("order", [None, [], [99], "first", [True], [1.5], [[1]]])
def test_no_order_moves_nothing(order: Any) -> None:
    llm = Acting(lambda _: says(waiting=order))
    assert LlmProposer(Asker(llm)).propose(waiting(idea(1), idea(2)), 4).weights == ()


@pytest.mark.parametrize(
    ("rewards", "expected"),
    [
        ((3.0, 2.0, 1.0, 0.0), Agreement(6, 6)),
        ((0.0, 1.0, 2.0, 3.0), Agreement(0, 6)),
        ((1.0, None, 2.0, None), Agreement(3, 5)),
        ((1.0, 1.0, 1.0, 1.0), Agreement(0, 0)),
    ],
)
def test_agreement_is_counted_in_pairs(
    rewards: tuple[float | None, ...], expected: Agreement
) -> None:
    judge = Judge()
    judge.ordered(0, [idea(number) for number in range(4)])
    assert judge.agreement([came(*one) for one in enumerate(rewards)]) == expected


def test_what_was_left_out_comes_behind_and_is_not_compared_with_itself() -> None:
    judge = Judge()
    judge.weights(0, [idea(number) for number in range(4)], [2])
    assert judge.agreement([came(0, 3.0), came(1, 2.0), came(2, 1.0)]) == Agreement(1, 2)


def test_a_judge_that_a_coin_would_do_for_is_not_followed() -> None:
    ideas = [idea(number) for number in range(6)]
    order = [*range(1, 7)]
    llm = Acting(lambda _: says(waiting=order))
    proposer = LlmProposer(Asker(llm))
    assert proposer.propose(waiting(*ideas), 4).weights
    wrong = tuple(came(number, float(number)) for number in range(6))
    assert proposer.propose(waiting(*ideas, evaluated=wrong), 4).weights == ()
    found = proposer.agreement(wrong)
    assert (found.in_order, found.pairs, found.tau) == (0, 15, -1.0)
    right = tuple(came(number, -float(number)) for number in range(6))
    assert proposer.propose(waiting(*ideas, evaluated=right), 4).weights


def test_an_edit_of_a_line_comes_with_its_plan() -> None:
    llm = Acting(lambda question: says(GOOD, SUM) if is_plan(question) else says(
        draft(edits=[edit("int i =", "const int i =")])
    ))  # fmt: skip
    assert [one.title for one in LlmProposer(Asker(llm)).propose(view(), 4).ideas] == [
        "an edit",
        "a sum",
    ]
    assert len(llm.requests) == 2


def test_the_reply_that_is_asked_for_has_all_of_it() -> None:
    llm = Acting(lambda _: says())
    LlmProposer(Asker(llm)).propose(view(), 4)
    schema = json.loads(llm.requests[0].schema)
    assert schema["required"] == ["proposals", "waiting"]
    assert "span" in schema["$defs"]["Draft"]["required"]
