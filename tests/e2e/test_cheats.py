"""Every cheat is rejected for the right reason, and its honest twin passes the same checks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from cheating import Judges, outcome_of

from optiml_magic.testing.cheats import NAMES, cheat
from tests.present import sampled

ROWS = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 15, 16}  # 11 needs the host's side of CUDA


@pytest.fixture(scope="module")
def judges() -> Iterator[Judges]:
    with Judges("emulated:h200") as found:
        yield found


def test_there_are_cheats_of_every_row() -> None:
    assert {cheat(name).row for name in NAMES} == ROWS
    assert len(NAMES) >= 30


@pytest.mark.parametrize("name", sampled((n for n in NAMES if cheat(n).device != "cuda"), 29))
def test_a_cheat_is_rejected_for_the_right_reason_and_its_twin_passes(
    judges: Judges, name: str
) -> None:
    pair = cheat(name)
    rejected = outcome_of(judges, pair.task, pair.text)
    assert pair.rejects(rejected), rejected
    accepted = outcome_of(judges, pair.task, pair.twin)
    assert accepted.passed, accepted
