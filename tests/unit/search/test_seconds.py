"""A short budget holds: stages of scripted lengths, on a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic.evaluation.limit import Limit
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.search import loop
from optiml_magic.search.loop import Batches, Budget
from optiml_magic.search.search import TreeSearch
from optiml_magic.timings import Timings
from tests.present import examples
from tests.unit.search import toy


@dataclass
class Scripted:
    """A card that takes as long as it is told: what is said of ``referee.py``, in few lines."""

    preparing: float
    measuring: float  # of the input kernel
    spent: Sequence[float]  # evaluations in turn, the last one again and again
    counting: float
    hazards: float = 3.0
    own: float = 0.0  # of what the first evaluation took, for what no candidate is looked at for
    now: float = 0.0
    counted: int = 0

    def search(self, seconds: float) -> int:
        """How many were evaluated when the command ended, at ``now``."""
        timings = Timings(clock=lambda: self.now)
        limit = Limit(timings, seconds)
        self.now += self.preparing
        done = 0

        def begin(candidates: Sequence[Candidate]) -> Callable[[], list[Evaluation]]:
            nonlocal done
            found = []
            for evaluation in toy.evaluate(candidates):
                took = self.spent[min(done, len(self.spent) - 1)]
                self.now, done = self.now + took, done + 1
                found.append(replace(evaluation, seconds_spent=took))
            first = candidates[0].number == 0
            if first:
                limit.measured(self.measuring)
                limit.asked_of_input(self.own)
            asked, began = first or limit.affords_counters, self.now

            def collect() -> list[Evaluation]:
                if asked:
                    self.now = max(self.now, began + self.counting)
                    self.counted += len(found)
                    limit.counted(self.now - began)
                return found

            return collect

        tree = TreeSearch(toy.proposal("0" * toy.BITS, prior=1.0), toy.expand)
        budget = Budget(1000, seconds, limit.kept, limit.first)
        steps = loop.run(tree, begin, budget, batches=Batches(4, 1), timings=timings).steps
        if len(steps) > 1:
            self.now += self.hazards + self.measuring
            if limit.affords_another_size:
                self.now += 2 * self.measuring
        return len(steps)


# Searches of 18 s on an H200 that ended up to 9 s late: the seconds of their evaluations.
LATE = {
    "standardise": Scripted(3.5, 1.0, [1.99, 1.65, 0.99, 0.7, 0.69], 5.0),
    "gemv": Scripted(4.0, 1.2, [1.86, 1.39, 1.02, 0.97, 2.47], 4.5),
    "cross entropy": Scripted(3.8, 1.2, [2.64, 2.36, 3.64, 0.99, 1.07], 4.0),
    "products": Scripted(3.0, 1.2, [1.42, 3.04, 3.4, 1.32, 1.61], 4.5),
}


@pytest.mark.parametrize("name", LATE)
def test_a_search_of_18_seconds_ends_in_time(name: str) -> None:
    card = replace(LATE[name])
    evaluated = card.search(18.0)
    assert card.now <= 1.1 * 18.0
    assert evaluated > 1


def test_with_more_seconds_all_but_the_last_are_counted() -> None:
    card = replace(LATE["gemv"], spent=[1.86, 0.4])
    assert card.search(60.0) - card.counted <= 12
    assert 54.0 <= card.now <= 66.0
    assert card.counted > 30


@settings(max_examples=examples(60, 2000))
@given(
    seconds=st.floats(15.0, 300.0),
    measuring=st.floats(0.3, 2.0),
    first=st.floats(0.5, 3.0),
    shares=st.lists(st.floats(0.1, 1.0), min_size=1, max_size=30),
    counting=st.floats(0.5, 4.0),
)
def test_where_candidates_take_no_longer_than_the_input_kernel_one_batch_alone_is_late(
    seconds: float, measuring: float, first: float, shares: list[float], counting: float
) -> None:
    """All that it takes is its measuring, of which slow candidates are spared most, and the rest."""
    spent = [measuring + first, *(share * first for share in shares)]
    card = Scripted(2.0, measuring, spent, counting)
    card.search(seconds)
    # Four that are begun at once may each take longer than any before: three of them come too late.
    assert card.now <= 1.1 * seconds + 3 * max(spent[1:])


# What an input kernel took before something was tried of 30 s, on a machine with much else to do.
LONG = {
    "sums of columns": Scripted(6.0, 2.0, [6.0, 3.0, 1.5], 5.0),
    "one loop for all": Scripted(5.0, 5.0, [7.0, 2.0], 6.0),
    "hazards of what is slow": Scripted(2.0, 0.5, [16.0, 3.0, 1.0], 0.6, own=13.0),
}


@pytest.mark.parametrize("name", LONG)
def test_something_is_tried_where_the_input_kernel_took_long(name: str) -> None:
    card = replace(LONG[name])
    assert card.search(30.0) > 1
    assert card.now <= 33.0
