from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.search.controls import Controls
from optiml_magic.search.loop import Batches, Budget, Collect
from optiml_magic.search.loop import run as loop_run
from optiml_magic.search.policies.puct import Puct
from optiml_magic.search.search import TreeSearch
from tests.unit.search import toy

GOLDEN = Path(__file__).parents[2] / "golden" / "search"
ROOT = toy.proposal("0" * toy.BITS)


def search(seed: int = 0, **policy: float) -> TreeSearch:
    return TreeSearch(ROOT, toy.expand, policy=Puct(worse=2.0, **policy), seed=seed)


def texts(trajectory: Trajectory) -> list[str]:
    return [step.candidate.text for step in trajectory.steps]


def test_the_root_is_evaluated_first_and_alone() -> None:
    mcts = search()
    assert [c.text for c in mcts.ask(5)] == [ROOT.text]
    assert mcts.ask(5) == []


def test_it_finds_the_best_of_64_with_far_fewer_evaluations() -> None:
    found = []
    for seed in range(10):
        trajectory = toy.run(search(seed), toy.evaluate, Budget(evaluations=40))
        found.append("1" * toy.BITS in texts(trajectory))
    assert sum(found) >= 9


def test_no_text_is_asked_twice() -> None:
    trajectory = toy.run(search(), toy.evaluate, Budget(evaluations=64))
    assert len(set(texts(trajectory))) == len(trajectory.steps)


def test_it_ends_by_itself_when_everything_was_tried() -> None:
    trajectory = toy.run(search(), toy.evaluate, Budget(evaluations=1000))
    assert trajectory.stopped == "nothing left to try"
    # The traps have no children, and every other text is reached around them.
    assert len(trajectory.steps) == 2**toy.BITS


def test_failed_candidates_are_never_parents_nor_the_best() -> None:
    trajectory = toy.run(search(), toy.evaluate, Budget(evaluations=64))
    failed = {s.candidate.number for s in trajectory.steps if not s.evaluation.verdict.passed}
    assert failed
    assert not failed & {s.candidate.parent for s in trajectory.steps}
    assert trajectory.best.candidate.text == "1" * toy.BITS


def test_a_failed_root_ends_the_search() -> None:
    mcts = TreeSearch(toy.proposal("110"), toy.expand)
    trajectory = toy.run(mcts, toy.evaluate, Budget(evaluations=10))
    assert len(trajectory.steps) == 1
    assert trajectory.stopped == "the input kernel failed"
    assert trajectory.best is trajectory.root


def test_a_batch_in_flight_spreads_over_the_tree() -> None:
    mcts = search(exploration=0.25, strength=1e9)
    mcts.tell(toy.evaluate(mcts.ask(1)))
    for _ in range(6):
        mcts.tell(toy.evaluate(mcts.ask(1)))
    asked = mcts.ask(4)
    assert len(asked) == 4
    assert len({c.parent for c in asked}) > 1


def test_the_order_of_tell_does_not_matter_to_the_statistics() -> None:
    def visits(reverse: bool) -> list[tuple[str, int, float]]:
        mcts = search(seed=3)
        mcts.tell(toy.evaluate(mcts.ask(1)))
        for _ in range(5):
            evaluations = toy.evaluate(mcts.ask(3))
            mcts.tell(evaluations[::-1] if reverse else evaluations)
        return [(n.candidate.text, n.visits, round(n.value_sum, 9)) for n in mcts.nodes]

    assert visits(reverse=False) == visits(reverse=True)


@given(seed=st.integers(0, 2**32 - 1), batch=st.integers(1, 7), budget=st.integers(1, 80))
def test_statistics_add_up_whatever_the_seed_and_the_batch(
    seed: int, batch: int, budget: int
) -> None:
    mcts = search(seed)
    trajectory = toy.run(mcts, toy.evaluate, Budget(evaluations=budget), batch=batch)
    nodes = mcts.nodes
    assert len(trajectory.steps) <= budget
    assert nodes[0].visits == len(trajectory.steps)
    for node in nodes:
        assert node.pending == 0
        below = sum(child.visits for child in node.children)
        assert node.visits == below + (node.step is not None) + node.points
        assert node.best is None or mcts.lowest <= node.value <= node.value_max <= mcts.highest


def test_the_same_seed_gives_the_same_run_and_another_seed_another() -> None:
    def order(seed: int) -> list[str]:
        broad = search(seed, exploration=0.25, strength=1e9)
        return texts(toy.run(broad, toy.evaluate, Budget(evaluations=30)))

    assert order(7) == order(7)
    assert len({tuple(order(seed)) for seed in range(6)}) > 1


def test_the_unvisited_are_preferred_and_then_the_better() -> None:
    """What is tried next follows the rewards, and in time the visits."""
    rewards = {"a": 0.5, "b": 0.4}

    def expand(view: View, count: int) -> Ideas:
        del count
        text = view.step.candidate.text
        ideas = (Idea(text + c, "toy", partial(str, text + c), text + c) for c in "ab")
        return Ideas(tuple(ideas) if len(text) < 9 else ())

    def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
        return [
            Evaluation(
                c.number, c.text, Verdict(Outcome.PASSED, ""), measurement=toy.measured(1.0),
                reward=rewards.get(c.text[1:2], 0.0),
            )
            for c in candidates
        ]  # fmt: skip

    tree = TreeSearch(toy.proposal("0"), expand, policy=Puct(exploration=0.7))
    toy.run(tree, evaluate, Budget(evaluations=30))
    better, poorer = sorted(tree.root.children, key=lambda node: -node.value)
    assert better.visits > poorer.visits > 1


def test_a_stop_returns_what_was_found() -> None:
    controls, calls = Controls(), iter([0, 1, 2])

    def progress(*_: object) -> None:
        if next(calls) == 2:
            controls.stop()

    trajectory = toy.run(search(), toy.evaluate, Budget(40), controls=controls, progress=progress)
    assert trajectory.stopped == "stopped"
    assert len(trajectory.steps) == 3


def test_ctrl_c_returns_what_was_found() -> None:
    count = 0

    def interrupted(candidates: list) -> list:  # type: ignore[type-arg]
        nonlocal count
        count += 1
        if count == 4:
            raise KeyboardInterrupt
        return toy.evaluate(candidates)

    trajectory = toy.run(search(), interrupted, Budget(40))
    assert trajectory.stopped == "interrupted"
    assert len(trajectory.steps) == 3


@pytest.mark.parametrize("seed", [0, 1])
def test_golden_tree(seed: int) -> None:
    """A recorded run, rebuilt from its seed, matches node for node."""
    trajectory = toy.run(search(seed), toy.evaluate, Budget(evaluations=25), batch=2)
    tree = [
        [s.candidate.number, s.candidate.parent, s.candidate.text, round(s.evaluation.reward, 6)]
        for s in trajectory.steps
    ]
    recorded = json.loads((GOLDEN / f"toy-seed-{seed}.json").read_text())
    assert tree == recorded


def test_a_batch_is_begun_before_the_one_before_is_told() -> None:
    order: list[str] = []

    def begin(candidates: Sequence[Candidate]) -> Collect:
        numbers = [candidate.number for candidate in candidates]
        order.append(f"begin {numbers}")

        def collect() -> list[Evaluation]:
            order.append(f"collect {numbers}")
            return toy.evaluate(candidates)

        return collect

    trajectory = loop_run(search(), begin, Budget(evaluations=9), batches=Batches(3, 1))
    assert order[:2] == ["begin [0]", "collect [0]"]  # nothing to ask before the first is told
    assert order[2:] == [
        "begin [1, 2, 3]", "begin [4, 5, 6]", "collect [1, 2, 3]",
        "begin [7, 8]", "collect [4, 5, 6]", "collect [7, 8]",
    ]  # fmt: skip
    assert [step.candidate.number for step in trajectory.steps] == [*range(9)]


def test_what_was_begun_is_kept_when_the_user_interrupts() -> None:
    asked = 0

    def begin(candidates: Sequence[Candidate]) -> Collect:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise KeyboardInterrupt
        return partial(toy.evaluate, candidates)

    trajectory = loop_run(search(), begin, Budget(evaluations=9), batches=Batches(3, 1))
    assert trajectory.stopped == "interrupted"
    assert len(trajectory.steps) == 4


def test_the_seconds_end_a_search_before_one_more_would_overrun_them() -> None:
    def step(number: int, seconds: float) -> Step:
        candidate = Candidate(number, None, toy.proposal("0"))
        return Step(candidate, replace(toy.evaluation(candidate), seconds_spent=seconds))

    steps = [step(0, 9.0), step(1, 2.0), step(2, 4.0)]
    budget = Budget(100, 60.0, kept=lambda _: 10.0)
    assert budget.room(steps, elapsed=20.0) == 10  # of 3 s each
    assert budget.room(steps, elapsed=49.0) == 1  # one of 4 s ends 3 s late: less than a twelfth
    assert budget.room(steps, elapsed=20.0, begun=4) == 10  # these have had their seconds
    assert budget.room(steps, elapsed=20.0, begun=budget.evaluations - 4) == 4 - len(steps)
    assert budget.room(steps, elapsed=50.0) == 0
    assert budget.room([*steps, step(3, 30.0)], elapsed=30.0) == 0
