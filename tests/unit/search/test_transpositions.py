"""Programs that another way led to before, ends, and what happens when a search stalls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.search.loop import Budget
from optiml_magic.search.policies.puct import Puct
from optiml_magic.search.search import TreeSearch
from tests.unit.search import toy

ROOT = toy.proposal("0")
PASSED = Verdict(Outcome.PASSED, "")


class Evaluator:
    """Of texts whose letters are edits; those of the same letters are one program."""

    def __init__(self, worth: Callable[[str], float]) -> None:
        self._worth = worth
        self._seen: dict[str, int] = {}
        self.evaluated: list[str] = []

    def __call__(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        return [self._one(candidate) for candidate in candidates]

    def _one(self, candidate: Candidate) -> Evaluation:
        program = "".join(sorted(candidate.text))
        first = self._seen.setdefault(program, candidate.number)
        found = Evaluation(
            candidate.number, program, PASSED, toy.measured(1.0), reward=self._worth(program)
        )
        if first != candidate.number:
            return replace(found, duplicate_of=first)
        self.evaluated.append(program)
        return found


def letters(edits: str, *, orders: bool = True) -> Callable[[View, int], Ideas]:
    """Each letter once; with ``orders`` nothing but the programs says that two ways are one."""

    def expand(view: View, count: int) -> Ideas:
        del count
        text = view.step.candidate.text
        left = [edit for edit in edits if edit not in text]
        return Ideas(
            tuple(
                Idea(e, "toy", partial(str, text + e), text + e if orders else e, prior=0.5)
                for e in left
            )
        )

    return expand


def test_two_orders_of_two_edits_lead_to_one_node() -> None:
    tree = TreeSearch(ROOT, letters("ab"), policy=Puct(worse=2.0))
    steps = toy.run(tree, Evaluator(len), Budget(evaluations=99)).steps
    numbers = {step.candidate.text: step.candidate.number for step in steps}
    assert numbers.keys() == {"0", "0a", "0b", "0ab", "0ba"}
    one, other = (tree.nodes[n] for n in sorted((numbers["0ab"], numbers["0ba"])))
    assert (other.same, other.closed, other.children) == (one, True, ())
    assert tree.root.visits == 4
    assert other.parent is not None
    assert (other.parent.visits, other.parent.value_max) == (1, 2.0)


def test_nothing_is_tried_below_both() -> None:
    tree = TreeSearch(ROOT, letters("abc"), policy=Puct(worse=2.0))
    evaluator = Evaluator(len)
    steps = toy.run(tree, evaluator, Budget(evaluations=99)).steps
    assert len(evaluator.evaluated) == len(set(evaluator.evaluated)) == 2**3
    again = {s.candidate.number for s in steps if s.evaluation.duplicate_of is not None}
    assert again
    assert not again & {step.candidate.parent for step in steps}
    assert tree.exhausted


def test_what_came_before_is_not_of_the_budget() -> None:
    evaluator = Evaluator(len)
    tree = TreeSearch(ROOT, letters("abc"), policy=Puct(worse=2.0))
    trajectory = toy.run(tree, evaluator, Budget(evaluations=7), batch=3)
    assert len(evaluator.evaluated) == 7 < len(trajectory.steps)
    assert trajectory.stopped == "budget of 7 evaluations spent"


def test_a_search_that_finds_the_same_alone_ends() -> None:
    def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
        return [
            Evaluation(
                c.number, "one", PASSED, toy.measured(1.0), duplicate_of=0 if c.number else None
            )
            for c in candidates
        ]

    tree = TreeSearch(ROOT, letters("abcdefghijkl"))
    trajectory = toy.run(tree, evaluate, Budget(evaluations=5))
    assert len(trajectory.steps) == 1 + 5
    assert trajectory.stopped == "5 programs were duplicates"
    assert (tree.stalled, tree.root.visits) == (0, 1)


def test_one_that_is_told_before_the_one_it_repeats() -> None:
    tree = TreeSearch(ROOT, letters("ab"), policy=Puct(worse=2.0))
    evaluator = Evaluator(len)
    tree.tell(evaluator(tree.ask(1)))
    first, second = tree.ask(2)
    tree.tell([replace(found, duplicate_of=first.number) for found in evaluator([second])])
    tree.tell(evaluator([first]))
    assert tree.nodes[second.number].same is tree.nodes[first.number]
    assert [node.pending for node in tree.nodes] == [0, 0, 0]


def test_below_what_failed_nothing_is_tried() -> None:
    def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
        found = Evaluator(len)(candidates)
        wrong = Verdict(Outcome.WRONG, "an a")
        return [replace(e, verdict=wrong, reward=-1.0) if "a" in e.identity else e for e in found]

    tree = TreeSearch(ROOT, letters("abc"), policy=Puct(worse=2.0))
    steps = toy.run(tree, evaluate, Budget(evaluations=99)).steps
    failed = {s.candidate.number for s in steps if "a" in s.candidate.text}
    assert failed
    assert not failed & {step.candidate.parent for step in steps}
    assert all(tree.nodes[number].closed for number in failed)
    assert tree.exhausted


def test_a_search_that_stalls_begins_elsewhere() -> None:
    """Below ``a``, the best, all lose; after some patience the next best is edited."""

    def worth(program: str) -> float:
        return {"0a": 0.5, "0": 0.0}.get(program, 0.2 if "a" in program else 0.3)

    def expand(view: View, count: int) -> Ideas:
        if view.step.candidate.text != "0":
            return letters("cdefghijklmn", orders=False)(view, count)
        a, b = letters("ab", orders=False)(view, count).ideas
        return Ideas((a, replace(b, paid=True)))

    def beside(patience: int) -> list[int]:
        policy = Puct(worse=2.0, patience=patience, exploration=0.0, average=0.0)
        tree = TreeSearch(ROOT, expand, policy=policy)
        steps = toy.run(tree, Evaluator(worth), Budget(evaluations=12)).steps
        return [s.candidate.number for s in steps if s.candidate.text.startswith("0b")]

    assert len(beside(patience=1000)) == 1
    _, *found = beside(patience=3)
    assert found[0] > 3
    assert found == [*range(found[0], 12, 2)]  # every other one
