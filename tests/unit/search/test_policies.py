"""Every policy on problems whose best program is known."""

from __future__ import annotations

import json
import random
import statistics
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from benchmarks.search import toys
from benchmarks.search.landscapes import LANDSCAPES
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.space import Point, Space
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.search.loop import Budget
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.policies.puct import Puct
from optiml_magic.search.search import TreeSearch
from tests.present import examples
from tests.unit.search import toy

EDITS = "abcdefgh"


class Problem:
    """Edits are letters, each once; ``n`` behind them is a tuned number from 0 to 4.

    A good edit gains, some only after another that loses a little, and each structure has its own
    best number. Priors know a little of which edits are good.
    """

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.gain = {edit: rng.choice([-0.02, 0.0, 0.0, 0.03, 0.06]) for edit in EDITS}
        first, second = rng.sample(EDITS, 2)
        self.gain |= {first: -0.03, second: 0.0}
        self.pair, self.bonus = (first, second), 0.35
        self.number = {edit: rng.randrange(5) for edit in EDITS}
        self.priors = {
            e: min(0.9, max(0.1, 0.4 + 2 * g + rng.uniform(-0.2, 0.2)))
            for e, g in self.gain.items()
        }

    def reward(self, text: str) -> float:
        edits, number = text[:-1], int(text[-1])
        best = sum(self.number[e] for e in edits) % 5
        paired = self.bonus * all(e in edits for e in self.pair)
        return sum(self.gain[e] for e in edits) + paired - 0.02 * abs(number - best)

    def expand(self, view: View, count: int) -> Ideas:
        del count
        text = view.step.candidate.text
        ideas = [
            Idea(e, "toy", partial(str, text[:-1] + e + text[-1]), e, prior=self.priors[e])
            for e in EDITS
            if e not in text and len(text) < 6
        ]
        return Ideas(tuple(sorted(ideas, key=lambda i: -i.prior)))

    def spaces(self, step: Step) -> Space:
        head, number = step.candidate.text[:-1], int(step.candidate.text[-1])
        return Space(
            {"n": (0, 1, 2, 3, 4)}, {"n": number}, lambda _: 1.0, lambda p: f"{head}{p['n']}"
        )

    def evaluate(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        passed = Verdict(Outcome.PASSED, "")
        return [
            Evaluation(
                c.number, c.text, passed, toy.measured(2.0**-r), reward=r
            )
            for c in candidates
            for r in [self.reward(c.text)]
        ]  # fmt: skip


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_is_deterministic_and_asks_for_no_text_twice(policy: str) -> None:
    def texts() -> list[str]:
        problem = Problem(1)
        tree = TreeSearch(
            toy.proposal("0"), problem.expand, problem.spaces, policy=POLICIES[policy](), seed=5
        )
        steps = toy.run(tree, problem.evaluate, Budget(evaluations=60), batch=3).steps
        return [step.candidate.text for step in steps]

    assert texts() == texts()
    assert len(set(texts())) == len(texts())


def test_tree_search_needs_fewer_evaluations_than_greedy_and_random() -> None:
    """The record, and a sample of what it was made from."""
    means = json.loads(toys.RECORD.read_text())["mean"]
    assert means["mcts"] < min(means["greedy"], means["random"])
    seeds = range(examples(8, 50))
    needed = {
        name: statistics.mean(
            toys.needed(LANDSCAPES["plateau"], seed, POLICIES[name]()) for seed in seeds
        )
        for name in ("mcts", "greedy", "random")
    }
    assert needed["mcts"] < min(needed["greedy"], needed["random"]), needed


def test_a_structure_is_judged_by_its_tuned_best() -> None:
    problem = Problem(3)
    tree = TreeSearch(toy.proposal("0"), problem.expand, problem.spaces)
    toy.run(tree, problem.evaluate, Budget(evaluations=60))
    for node in tree.nodes:
        if node.points:
            own = [node.step, node.best]
            assert node.value == max(s.evaluation.reward for s in own if s)
    assert any(node.best is not node.step for node in tree.nodes)


def test_what_was_paid_for_is_tried_although_others_promise_more() -> None:
    def expand(view: View, count: int) -> Ideas:
        del count
        text = view.step.candidate.text
        cheap = [Idea(c, "rule", partial(str, text + c), text + c, prior=0.9) for c in "abcd"]
        dear = [
            Idea(c, "llm", partial(str, text + c), text + c, prior=0.01, paid=True) for c in "xyz"
        ]
        return Ideas((*cheap, *(dear if text == "0" else ())))

    def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
        passed = Verdict(Outcome.PASSED, "")
        return [
            Evaluation(c.number, c.text, passed, toy.measured(1.0), reward=0.0) for c in candidates
        ]

    steps = toy.run(TreeSearch(toy.proposal("0"), expand), evaluate, Budget(evaluations=9)).steps
    assert {"0x", "0y", "0z"} <= {step.candidate.text for step in steps}


def test_what_is_far_below_the_best_above_it_is_not_edited() -> None:
    def expand(view: View, count: int) -> Ideas:
        del count
        text = view.step.candidate.text
        return Ideas((Idea("s", "toy", partial(str, text + "s"), text),) if len(text) < 5 else ())

    def evaluate(slower: float) -> Callable[[Sequence[Candidate]], list[Evaluation]]:
        passed = Verdict(Outcome.PASSED, "")
        return lambda candidates: [
            Evaluation(c.number, c.text, passed, toy.measured(1.0), reward=-slower * len(c.text))
            for c in candidates
        ]

    def count(slower: float) -> int:
        tree = TreeSearch(toy.proposal("0"), expand, policy=Puct(worse=0.1))
        return len(toy.run(tree, evaluate(slower), Budget(evaluations=9)).steps)

    assert count(0.05) > count(0.2) == 2


def test_nothing_is_found_in_a_space_of_one_point() -> None:
    def spaces(step: Step) -> Space:
        at: Point = {"n": 0}
        return Space({"n": (0,)}, at, lambda _: 1.0, lambda _: step.candidate.text)

    tree = TreeSearch(toy.proposal("0"), lambda *_: Ideas(), spaces)
    trajectory = toy.run(tree, toy.evaluate, Budget(evaluations=9))
    assert (len(trajectory.steps), trajectory.stopped) == (1, "nothing left to try")
