"""A search that begins from several programs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from optiml_magic.journal import Journal
from optiml_magic.model.candidate import Proposal
from optiml_magic.model.evaluation import Step, Trajectory
from optiml_magic.model.thought import Attempt, Wave
from optiml_magic.model.view import View
from optiml_magic.search.loop import Batches, Budget, at_once, run
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.search import TreeSearch
from optiml_magic.search.sources import also
from tests.unit.search import toy
from tests.unit.test_journal import HEADER

ROOT = toy.proposal("000000")
OTHERS = (toy.proposal("010100"), toy.proposal("110000"), toy.proposal("000111"))


def begun(trajectory: Trajectory) -> list[str]:
    return [step.candidate.text for step in trajectory.roots]


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batches", [Batches(), Batches(3, 1)], ids=str)
def test_the_others_follow_the_baseline_and_all_may_be_edited(
    policy: str, batches: Batches
) -> None:
    tree = TreeSearch(ROOT, toy.expand, roots=also(*OTHERS), policy=POLICIES[policy]())
    trajectory = run(tree, at_once(toy.evaluate), Budget(40), batches=batches)
    assert begun(trajectory) == [p.text for p in (ROOT, *OTHERS)]
    wrong = next(s for s in trajectory.steps if s.candidate.text == "110000")
    assert not wrong.evaluation.verdict.passed
    parents = {s.candidate.parent for s in trajectory.steps}
    assert wrong.candidate.number not in parents
    assert trajectory.root.candidate.text == ROOT.text
    best = trajectory.lineage(trajectory.best)
    assert best[0] in trajectory.roots
    assert best[0] is not trajectory.root


def test_a_view_tells_where_its_step_comes_from() -> None:
    seen: dict[str, View] = {}

    def expand(view: View, count: int):  # type: ignore[no-untyped-def]
        seen[view.step.candidate.text] = view
        return toy.expand(view, count)

    tree = TreeSearch(ROOT, expand, roots=also(OTHERS[2]), policy=POLICIES["random"]())
    toy.run(tree, toy.evaluate, Budget(20))
    assert seen[ROOT.text].begun.candidate.number == 0
    other = seen[OTHERS[2].text]
    assert other.root.candidate.number == 0
    assert other.begun.candidate.text == OTHERS[2].text
    assert [step.candidate.text for step in other.path] == [OTHERS[2].text]


def test_more_are_asked_for_once_those_before_are_told() -> None:
    heard: list[list[str]] = []

    def roots(steps: Sequence[Step]) -> Sequence[Proposal]:
        heard.append([step.candidate.text for step in steps])
        return [OTHERS[:2], OTHERS[1:], ()][len(heard) - 1]

    tree = TreeSearch(ROOT, toy.expand, roots=roots)
    trajectory = toy.run(tree, toy.evaluate, Budget(1000))
    assert [len(told) for told in heard] == [1, 3, 4]  # a text that was there is not tried again
    assert begun(trajectory) == [p.text for p in (ROOT, *OTHERS)]
    assert tree.exhausted


def test_a_baseline_that_fails_ends_it_before_the_others_are_asked_for() -> None:
    tree = TreeSearch(toy.proposal("110"), toy.expand, roots=lambda _: pytest.fail("asked"))
    assert len(toy.run(tree, toy.evaluate, Budget(9)).steps) == 1


def waves(earlier: Sequence[Wave], steps: Sequence[Step]) -> Wave:
    """Two attempts at once, one of them no program; it is mended; and then no more."""
    right, mended = (Attempt("t", 0.5, n, OTHERS[2 * n]) for n in (0, 1))
    broken = Attempt("t", 0.9, 0, None, "no JSON")
    return [Wave((broken,)), Wave((right, broken)), Wave((mended,)), Wave(())][len(earlier)]


@pytest.mark.parametrize("cut", range(2, 9))
def test_a_resumed_run_begins_from_the_same_programs_and_asks_for_none_twice(
    cut: int, tmp_path: Path
) -> None:
    def search(journal: Journal, asked: list[int]) -> Trajectory:
        def think(earlier: Sequence[Wave], steps: Sequence[Step]) -> Wave:
            asked.append(len(earlier))
            return waves(earlier, steps)

        roots = journal.remember_waves(think)
        expand = journal.remember_expand(toy.expand, toy.expand)
        tree = TreeSearch(ROOT, expand, roots=roots)
        found = run(tree, journal.remember_evaluate(at_once(toy.evaluate)), Budget(12))
        journal.close()
        return found

    path = tmp_path / "run.jsonl"
    asked: list[int] = []
    whole = search(Journal.create(path, HEADER), asked)
    assert asked == [0, 1, 2, 3]
    raw = path.read_bytes()
    kept = raw.splitlines(keepends=True)[:cut]
    path.write_bytes(b"".join(kept))
    again: list[int] = []
    assert search(Journal.resume(path, HEADER), again) == whole
    assert path.read_bytes() == raw
    assert again == asked[sum(b'"wave":{' in line for line in kept) :]
