"""Every hostile kernel has its verdict, and the next candidate is evaluated correctly."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.hostile import HOSTILE, SETTINGS, healthy, task
from tests.present import SOAK, sampled

DEVICE = "emulated:h200"
NAMES = sampled(name for name, hostile in HOSTILE.items() if SOAK or not hostile.slow)


def candidate(number: int, text: str) -> Candidate:
    return Candidate(number, None, Proposal(text, "", "test"))


@pytest.fixture(scope="module")
def evaluator() -> Iterator[Evaluator]:
    settings = resolve({"device": DEVICE, **SETTINGS})
    with session(settings) as members:
        evaluator = Evaluator(prepare(task(), seeds=2), members.tools)
        evaluator([candidate(0, healthy(0))])
        yield evaluator


def test_there_are_more_than_enough() -> None:
    assert len(HOSTILE) >= 25
    assert len({hostile.text for hostile in HOSTILE.values()}) == len(HOSTILE)


@pytest.mark.parametrize("name", NAMES)
def test_it_has_its_verdict_and_the_next_one_passes(evaluator: Evaluator, name: str) -> None:
    number = 1 + list(HOSTILE).index(name)
    hostile = HOSTILE[name]
    (ended,) = evaluator([candidate(2 * number, hostile.text)])
    verdict = ended.verdict
    assert verdict.outcome in hostile.outcomes(DEVICE), verdict
    assert verdict.summary
    assert len(verdict.summary) < 2000
    assert "root:" not in verdict.summary
    (next_one,) = evaluator([candidate(2 * number + 1, healthy(number))])
    assert next_one.verdict.passed, next_one.verdict
    assert next_one.duplicate_of is None
