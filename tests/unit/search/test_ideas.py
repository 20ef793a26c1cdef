"""Texts are made for what is tried alone, and what becomes of no text is told."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.idea import Idea, Ideas, Ready
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.search.loop import Budget
from optiml_magic.search.policies.puct import Puct
from optiml_magic.search.search import TreeSearch
from tests.unit.search import toy

ROOT = toy.proposal("0000")


class Proposer:
    """Flips the bits of the root in order; ``made`` are the texts that were asked for."""

    def __init__(self, *refused: int) -> None:
        self.made: list[str] = []
        self.views: list[View] = []
        self._refused = refused

    def __call__(self, view: View, count: int) -> Ideas:
        del count
        self.views.append(view)
        text = view.step.candidate.text
        ideas = [self._idea(text, at) for at, bit in enumerate(text) if bit == "0"]
        return Ideas(tuple(ideas), (Refusal("flop", "there is no flop", len(self.views)),))

    def _idea(self, text: str, at: int) -> Idea:
        def make() -> str | Refusal:
            self.made.append(f"{text} {at}")
            if at in self._refused:
                return Refusal("flip", f"bit {at} is stuck", at)
            return text[:at] + "1" + text[at + 1 :]

        return Idea(f"flip {at}", "flip", make, f"flip {at}")


def test_texts_are_made_for_what_is_tried_alone() -> None:
    proposer = Proposer()
    trajectory = toy.run(
        TreeSearch(ROOT, proposer, policy=Puct(worse=2.0)), toy.evaluate, Budget(evaluations=4)
    )
    assert len(proposer.made) == len(trajectory.steps) - 1 == 3


def test_a_view_has_what_waits_and_what_else_was_made_of_the_same_program() -> None:
    seen: list[View] = []

    def expand(view: View, count: int) -> Ideas:
        del count
        seen.append(view)
        text = view.step.candidate.text
        waits = [Idea(f"{text}{c}", "toy", Ready(text + c), text + c, paid=True) for c in "xyz"]
        cheap = Idea(f"{text}a", "toy", Ready(text + "a"), text + "a", prior=0.9)
        return Ideas((*waits, cheap) if text == "0" else ())

    def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
        passed = Verdict(Outcome.PASSED, "")
        return [Evaluation(c.number, c.text, passed, reward=len(c.text) / 9) for c in candidates]

    tree = TreeSearch(toy.proposal("0"), expand)
    toy.run(tree, evaluate, Budget(3))
    first = seen[0]
    assert first.siblings == ()
    waiting = [idea.title for idea in first.queued]
    assert waiting == ["0y", "0z"]  # what was asked for in turn is under way
    toy.run(tree, evaluate, Budget(9))
    assert len({view.step.candidate.text for view in seen}) > 2
    for view in (view for view in seen if view.step.candidate.text != "0"):
        others = {step.candidate.text for step in view.evaluated[1:]} - {view.step.candidate.text}
        assert {step.candidate.text for step in view.siblings} == others


def test_a_late_refusal_costs_no_evaluation_and_is_told_of_its_step() -> None:
    proposer = Proposer(0, 2)
    trajectory = toy.run(
        TreeSearch(ROOT, proposer, policy=Puct(worse=2.0)), toy.evaluate, Budget(evaluations=3)
    )
    assert [step.candidate.proposal.title for step in trajectory.steps[1:]] == ["flip 1", "flip 3"]
    assert [[str(refusal) for refusal in step.refused] for step in trajectory.steps] == [
        ["flop: there is no flop, line 1", "flip: bit 0 is stuck"],
        ["flop: there is no flop, line 2", "flip: bit 0 is stuck", "flip: bit 2 is stuck, line 2"],
        [],
    ]


def test_proposers_that_are_asked_again_see_what_was_refused() -> None:
    proposer = Proposer(0, 1, 2, 3)
    trajectory = toy.run(
        TreeSearch(ROOT, proposer, policy=Puct(worse=2.0)), toy.evaluate, Budget(evaluations=9)
    )
    assert trajectory.stopped == "nothing left to try"
    assert len(trajectory.steps) == 1
    assert len(proposer.made) == 4
    assert len(trajectory.root.refused) == 5
    again = TreeSearch(ROOT, proposer, policy=Puct(worse=2.0))
    again.tell(toy.evaluate(again.ask(1)))
    assert again.ask(1) == []
    assert again.refused.keys() == {0}


def test_an_idea_is_known_by_its_key_and_a_text_is_evaluated_once() -> None:
    def expand(view: View, count: int) -> Ideas:
        del count
        tried = len(view.tried)
        same = [Idea("same", "toy", lambda: "1000", key) for key in ("a", "b")]
        return Ideas((*same, Idea("new", "toy", lambda: f"01{tried:02b}", f"new {tried // 2}")))

    trajectory = toy.run(TreeSearch(ROOT, expand), toy.evaluate, Budget(evaluations=4))
    texts = [step.candidate.text for step in trajectory.steps]
    assert texts.count("1000") == 1
    assert len(set(texts)) == len(texts)


def test_orders_of_the_same_edits_wait_until_the_rest_is_done() -> None:
    proposer = Proposer()
    mcts = TreeSearch(ROOT, proposer, policy=Puct(worse=2.0))
    trajectory = toy.run(mcts, toy.evaluate, Budget(evaluations=100))
    # Of the 16 subsets 15 are reached: 1111 is above the traps 11?0, and nothing else is lost.
    assert len({step.candidate.text for step in trajectory.steps}) == len(trajectory.steps) == 16
    assert mcts.exhausted


def test_refusals_are_told_those_of_findings_first_and_each_once() -> None:
    from optiml_magic.model.finding import Action, Finding
    from optiml_magic.model.refusal import foremost

    finding = Finding("far", "warning", "because", (), (Action("try", "tile"),), (1.0, 2.0))
    refusals = [
        Refusal("swap", "no axis"),
        Refusal("tile", "a jump", 9),
        Refusal("swap", "no axis"),
    ]
    assert foremost(refusals, [finding]) == (refusals[1], refusals[0])
    many = [Refusal("swap", str(number)) for number in range(40)]
    assert len(foremost(many)) == 12
