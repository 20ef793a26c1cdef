"""What is written by hand is the next candidate, whatever the policy; the journal keeps all of it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.search.landscapes import LANDSCAPES, Landscape
from optiml_magic.journal import Journal, left_by_hand, read_lines
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation, Trajectory
from optiml_magic.model.suggestion import HAND, Suggestion
from optiml_magic.search.controls import Controls
from optiml_magic.search.loop import ONE, Batches, Budget, at_once, run
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.search import TreeSearch
from tests.present import examples, sampled
from tests.unit.search.test_orders import KilledError, shape
from tests.unit.test_journal import HEADER

BUDGET = 24


@pytest.fixture(scope="module", autouse=True)
def _unsynced() -> Iterator[None]:
    """That lines reach the disk is shown where processes are killed; here it takes most time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("os.fsync", lambda _: None)
        yield


class Searched:
    """A search of a landscape with a journal, and somebody who writes programs on the way.

    ``edits`` are a parent and a program by the number of evaluations after which they are written.
    """

    def __init__(
        self,
        landscape: Landscape,
        policy: str,
        journal: Journal,
        edits: dict[int, tuple[int, str]],
        batches: Batches = ONE,
    ) -> None:
        self.landscape, self.journal, self.edits, self.batches = landscape, journal, edits, batches
        self.controls = Controls()
        self.tree = TreeSearch(
            landscape.root,
            journal.remember_expand(landscape.expand, landscape.expand),
            landscape.spaces,
            by_hand=journal.remember_suggestions(self.controls.take),
            policy=POLICIES[policy](),
            seed=7,
        )
        self.fresh: list[int] = []
        self.told = 0
        self.seen: dict[str, int] = {}

    def run(self, last: int = 1000) -> Trajectory:
        """KilledError once ``last`` were evaluated, in this run and before."""
        known = sum(line.evaluated is not None for line in read_lines(self.journal.path)[1])

        def evaluate(candidates: Sequence[Candidate]) -> list[Evaluation]:
            if self.told + len(candidates) > last:
                raise KilledError
            self.fresh += [candidate.number for candidate in candidates]
            return [self._evaluation(candidate) for candidate in candidates]

        def progress(*_: object) -> None:
            self.told += 1
            if self.told in self.edits and self.told > known:
                parent, text = self.edits[self.told]
                assert self.controls.suggest(parent, text) is None

        def remember(candidate: Candidate, evaluation: Evaluation) -> None:
            self.seen.setdefault(candidate.text, candidate.number)

        begin = self.journal.remember_evaluate(at_once(evaluate), remember)
        with self.controls.accepting(self._check, self.journal.suggest):
            return run(
                self.tree,
                begin,
                Budget(BUDGET),
                batches=self.batches,
                progress=progress,
                controls=self.controls,
            )

    def _evaluation(self, candidate: Candidate) -> Evaluation:
        (found,) = self.landscape.evaluate([candidate])
        first = self.seen.setdefault(candidate.text, candidate.number)
        return replace(found, duplicate_of=first if first != candidate.number else None)

    def _check(self, number: int | None, text: str) -> Suggestion:
        step = self.tree.step(number)
        assert step is not None
        return Suggestion(step.candidate.number, text)


def edits_of(
    landscape: Landscape, seed: int, count: int, latest: int = BUDGET - 2
) -> dict[int, tuple[int, str]]:
    """Sets of edits by chance: some fail, some are there already, some are better than all."""
    rng = random.Random(seed)
    found = {}
    for told in rng.sample(range(1, latest), count):
        size = rng.randrange(min(landscape.depth, len(landscape.gains)))
        letters = "".join(sorted(rng.sample(sorted(landscape.gains), size)))
        found[told] = (rng.randrange(told), landscape._text(letters, ()))
    return found


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("batches", [ONE, Batches(4, 1)], ids=["one", "batches"])
def test_it_is_the_next_candidate_of_every_policy(
    policy: str, batches: Batches, tmp_path: Path
) -> None:
    landscape = LANDSCAPES["mixed"](0)
    edits = edits_of(landscape, 1, 5, latest=12)
    with closing(Journal.create(tmp_path / "j", HEADER)) as journal:
        searched = Searched(landscape, policy, journal, edits, batches)
        trajectory = searched.run()
    by_hand = [s.candidate for s in trajectory.steps if s.candidate.proposal.proposer == HAND]
    assert [(c.parent, c.text) for c in by_hand] == [edits[told] for told in sorted(edits)]
    assert {c.proposal.title for c in by_hand} == {"edited by hand"}
    if batches is ONE:
        assert [candidate.number for candidate in by_hand] == sorted(edits)
    else:  # the batch that was begun before comes first
        for candidate, told in zip(by_hand, sorted(edits), strict=True):
            assert told <= candidate.number <= told + 8
    assert len(searched.fresh) == len(trajectory.steps)
    counted = [step for step in trajectory.steps if step.evaluation.duplicate_of is None]
    assert len(counted) == BUDGET
    assert searched.tree.base.visits == len(counted)
    assert all(node.pending == 0 for node in searched.tree.nodes)


@pytest.mark.parametrize("policy", POLICIES)
def test_the_tree_goes_on_from_what_was_written(policy: str, tmp_path: Path) -> None:
    """All that gains at once, below a program that failed: the search tries edits of it."""
    landscape = LANDSCAPES["deceptive"](3)
    landscape = replace(landscape, wrong=frozenset(min(landscape.gains)))
    (wrong,) = landscape.wrong
    best = "".join(sorted(frozenset[str]().union(*landscape.together) - {wrong}))
    edits = {1: (0, landscape._text(wrong, ())), 2: (1, landscape._text(best, ()))}
    with closing(Journal.create(tmp_path / "j", HEADER)) as journal:
        searched = Searched(landscape, policy, journal, edits)
        trajectory = searched.run()
    first, second = trajectory.steps[1:3]
    assert not first.evaluation.verdict.passed
    assert second.evaluation.verdict.passed
    assert [s.candidate.number for s in trajectory.lineage(second)] == [0, 1, 2]
    (node,) = [n for n in searched.tree.nodes if n.candidate.number == 2]
    assert node.parent is searched.tree.root  # the nearest above that passed
    if policy != "best-of-n":
        assert any(step.candidate.parent == 2 for step in trajectory.steps)


def test_what_is_written_below_a_tree_that_is_done_opens_it_again(tmp_path: Path) -> None:
    """With ``mcts``, which closes what it is done with: all is tried but what was written."""
    landscape = replace(LANDSCAPES["deceptive"](3), depth=1)
    count = len(landscape.gains) + 1
    letters = sorted(landscape.gains)[:2]
    edits = {count: (0, landscape._text("".join(letters), ()))}
    with closing(Journal.create(tmp_path / "j", HEADER)) as journal:
        searched = Searched(landscape, "mcts", journal, edits)
        trajectory = searched.run()
    assert trajectory.stopped == "nothing left to try"
    assert trajectory.steps[-1].candidate.text == edits[count][1]


@settings(max_examples=examples(6, 400), deadline=None)
@pytest.mark.parametrize("policy", sampled(POLICIES, every=3))
@given(
    name=st.sampled_from(sorted(LANDSCAPES)),
    batches=st.sampled_from([ONE, Batches(3, 0), Batches(4, 1)]),
    seed=st.integers(0, 99),
    kills=st.lists(st.integers(1, BUDGET - 1), min_size=1, max_size=2),
    count=st.integers(1, 4),
)
def test_killed_anywhere_and_resumed_what_was_written_comes_when_it_came(
    policy: str,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    batches: Batches,
    seed: int,
    kills: list[int],
    count: int,
) -> None:
    landscape = LANDSCAPES[name](seed)
    edits = edits_of(landscape, seed, count)
    folder = tmp_path_factory.mktemp("hand")
    with closing(Journal.create(folder / "whole", HEADER)) as whole:
        undisturbed = Searched(landscape, policy, whole, edits, batches)
        wanted = undisturbed.run()
    Journal.create(folder / "cut", HEADER).close()
    for last in (*sorted(kills), 1000):
        with closing(Journal.resume(folder / "cut", HEADER)) as journal:
            searched = Searched(landscape, policy, journal, edits, batches)
            with suppress(KilledError):
                found = searched.run(last)
    assert found == wanted
    assert shape(searched.tree) == shape(undisturbed.tree)
    cut, whole_lines = (read_lines(folder / name)[1] for name in ("cut", "whole"))
    for kind in ("suggested", "taken", "evaluated"):  # nothing is lost, and nothing done twice
        there, wanted_there = (
            [found for line in lines if (found := getattr(line, kind))]
            for lines in (cut, whole_lines)
        )
        assert there == wanted_there


def test_killed_right_after_it_was_accepted_it_is_evaluated_when_the_run_is_resumed(
    tmp_path: Path,
) -> None:
    landscape = LANDSCAPES["mixed"](0)
    ((told, (parent, text)),) = edits_of(landscape, 1, 1).items()
    with closing(Journal.create(tmp_path / "j", HEADER)) as journal:
        searched = Searched(landscape, "mcts", journal, {})
        with suppress(KilledError):
            searched.run(told)
        journal.suggest(Suggestion(parent, text))
        assert journal.left == (
            "the search ended before a program written by hand; --resume evaluates it",
        )
    with closing(Journal.resume(tmp_path / "j", HEADER)) as journal:
        searched = Searched(landscape, "mcts", journal, {})
        steps = searched.run().steps
        assert journal.left == ()
    assert searched.fresh[0] == told  # nothing of what was known is evaluated again
    assert (steps[told].candidate.parent, steps[told].candidate.text) == (parent, text)


def test_a_suggestion_that_came_too_late_is_said_and_resumed_with_a_larger_budget(
    tmp_path: Path,
) -> None:
    landscape = LANDSCAPES["mixed"](0)
    edits = {BUDGET: (0, landscape._text("a", ()))}
    with closing(Journal.create(tmp_path / "j", HEADER)) as journal:
        trajectory = Searched(landscape, "mcts", journal, edits).run()
        assert len(trajectory.steps) == BUDGET
        assert len(journal.left) == 1
    assert left_by_hand(read_lines(tmp_path / "j")[1]) == 1
