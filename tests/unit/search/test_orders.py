"""Whatever the order in which candidates come back, and wherever a run is cut, the tree is one."""

from __future__ import annotations

import random
from contextlib import closing, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.search.landscapes import LANDSCAPES, Landscape
from optiml_magic.journal import Journal, read_lines
from optiml_magic.model.candidate import Candidate
from optiml_magic.search.policies import POLICIES
from optiml_magic.search.search import TreeSearch
from tests.present import examples, sampled
from tests.unit.test_journal import HEADER

BUDGET = 24


class KilledError(Exception):
    pass


def grown(landscape: Landscape, policy: str, journal: Journal | None = None) -> TreeSearch:
    expand = landscape.expand
    return TreeSearch(
        landscape.root,
        journal.remember_expand(expand, expand) if journal else expand,
        landscape.spaces,
        policy=POLICIES[policy](),
        seed=7,
    )


def shape(tree: TreeSearch) -> list[tuple[object, ...]]:
    """All that later decisions depend on."""
    return [
        (
            node.candidate, node.visits, node.pending, node.failures, round(node.value_sum, 9),
            node.best and node.best.candidate.number, node.points, node.spent, node.closed,
            [idea.key for idea in node.untried], [idea.key for idea in node.later],
        )
        for node in tree.nodes
    ]  # fmt: skip


def flown(
    landscape: Landscape, tree: TreeSearch, journal: Journal, capacity: int, seed: int, last: int
) -> list[Candidate]:
    """Keep ``capacity`` candidates in flight; they come back in an order of chance.

    What the journal holds comes back first, in its order. ``KilledError`` after ``last`` evaluations.
    """
    rng = random.Random(seed)
    known = [line.evaluated for line in read_lines(journal.path)[1] if line.evaluated]
    flying: list[Candidate] = []
    fresh: list[Candidate] = []
    for told in range(BUDGET):
        flying += tree.ask(min(capacity - len(flying), BUDGET - told - len(flying)))
        if not flying:
            break
        drawn = rng.randrange(len(flying))  # drawn for what is known too: the chance goes on
        if told < len(known):
            candidate = known[told].candidate
            assert candidate in flying
            evaluation = known[told].evaluation
        else:
            if told == last:
                raise KilledError
            candidate = flying[drawn]
            (evaluation,) = landscape.evaluate([candidate])
            journal.record(candidate, evaluation)
            fresh.append(candidate)
        flying.remove(candidate)
        tree.tell([evaluation])
    return fresh


@settings(max_examples=examples(6, 400))
@pytest.mark.parametrize("policy", sampled(POLICIES, every=3))
@given(
    name=st.sampled_from(sorted(LANDSCAPES)),
    capacity=st.integers(1, 6),
    seed=st.integers(0, 99),
    kills=st.lists(st.integers(1, BUDGET - 1), min_size=1, max_size=2),
)
def test_killed_anywhere_and_resumed_the_tree_is_the_same(
    policy: str,
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    capacity: int,
    seed: int,
    kills: list[int],
) -> None:
    landscape = LANDSCAPES[name](seed)
    folder = tmp_path_factory.mktemp("orders")
    with closing(Journal.create(folder / "whole", HEADER)) as whole:
        undisturbed = grown(landscape, policy, whole)
        all_of_them = flown(landscape, undisturbed, whole, capacity, seed, BUDGET)
    Journal.create(folder / "cut", HEADER).close()
    for last in (*sorted(kills), BUDGET):
        with closing(Journal.resume(folder / "cut", HEADER)) as journal:
            tree = grown(landscape, policy, journal)
            with suppress(KilledError):
                flown(landscape, tree, journal, capacity, seed, last)
    assert shape(tree) == shape(undisturbed)
    told = [line.evaluated.candidate for line in read_lines(folder / "cut")[1] if line.evaluated]
    assert told == all_of_them  # nothing is lost, nothing is evaluated twice


@settings(max_examples=examples(10, 400))
@given(data=st.data())
def test_the_order_within_a_tell_does_not_matter(data: st.DataObject) -> None:
    landscape = LANDSCAPES[data.draw(st.sampled_from(sorted(LANDSCAPES)))](0)
    policy = data.draw(st.sampled_from(sorted(POLICIES)))
    one, other = grown(landscape, policy), grown(landscape, policy)
    for _ in range(6):
        asked = one.ask(4)
        assert asked == other.ask(4)
        evaluations = landscape.evaluate(asked)
        one.tell(evaluations)
        other.tell(data.draw(st.permutations(evaluations)))
    assert shape(one) == shape(other)
