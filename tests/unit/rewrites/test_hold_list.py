"""The rule for lists that are searched: what it offers, and for which kernels."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.proposers.rewrites.hold_list import HoldList
from tests.ideas import asked
from tests.rewriting.families import lists


@pytest.mark.parametrize("maker", [lists.shared, lists.common, lists.products])
def test_a_list_that_stays_is_held(maker, compiles) -> None:
    ideas, refused = asked(HoldList(), maker(Random(1)).text)
    assert [idea.title.startswith("hold what line") for idea in ideas] == [True]
    assert not refused
    text = ideas[0].make()
    assert isinstance(text, str)
    compiles(text)


def test_a_list_that_moves_is_not() -> None:
    ideas, refused = asked(HoldList(), lists.moved(Random(0)).text)
    assert not ideas
    assert len(refused) == 1
    assert refused[0].line > 0
