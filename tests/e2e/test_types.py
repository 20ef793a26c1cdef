"""Every type of docs/kernel-programs.md, end to end: compiled, run in the device host, verified."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from typetable import BFLOAT16, STD, TYPES, Row

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.verdict import Outcome
from optiml_magic.problem import prepare
from optiml_magic.session import Session, session
from optiml_magic.settings import resolve
from tests.present import sampled

DEVICE = "emulated"


@pytest.fixture(scope="module")
def members() -> Iterator[Session]:
    with session(resolve({"device": DEVICE})) as opened:
        yield opened


@pytest.mark.parametrize("row", sampled([*TYPES, *BFLOAT16]), ids=str)
def test_a_type_is_passed_computed_with_and_compared(members: Session, row: Row) -> None:
    evaluator = Evaluator(prepare(row.task(), seeds=2), members.tools)
    (right,) = evaluator([Candidate(0, None, Proposal(row.text, "", "test"))])
    assert right.verdict.passed, right.verdict
    assert right.verdict.checks[0].elements == row.values()[0].size
    if row.include == STD:  # seconds of headers, for a dtype that another row has
        return
    wrong = replace(row, add="a").text
    (bad,) = evaluator([Candidate(1, 0, Proposal(wrong, "", "test"))])
    assert bad.verdict.outcome is Outcome.WRONG, bad.verdict
