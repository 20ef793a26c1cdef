"""On a card: what an edit promised is tested by its counters."""

from __future__ import annotations

import pytest

from optiml_magic.optimize import optimize
from optiml_magic.settings import resolve
from optiml_magic.testing.kernels import known_task

pytestmark = pytest.mark.gpu


def test_a_tile_lowers_the_sectors_that_ncu_counts() -> None:
    settings = resolve({"device": "cuda", "llm": "none", "budget": 4})
    task = known_task("transpose_naive", rows=2048, cols=2048)
    result = optimize(task, settings)
    steps = result.trajectory.steps[1:]
    assert all(step.evaluation.test is not None for step in steps)
    if any("no hardware counters" in note for note in result.summary.notes):
        pytest.skip("ncu gives no counters here")
    tests = [
        step.evaluation.test
        for step in steps
        if step.candidate.proposal.proposer == "transpose_tile" and step.evaluation.verdict.passed
    ]
    assert tests
    assert {(test.state, test.source) for test in tests if test} == {("confirmed", "ncu")}
