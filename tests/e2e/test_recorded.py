"""Good answers in whole searches: they were written down (``benchmarks/llm/record.py``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.llm.tasks import SHAPES, task
from benchmarks.llm.variants import VARIANTS, recorded, searched, seconds_of, settings_of
from optiml_magic.llms.recorded import RecordedLLM
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Step
from optiml_magic.optimize import evaluate_once

QUICK = "layer_norm"
_EARLY, _BUDGET = 6, 12


@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=[] if one == QUICK else pytest.mark.slow) for one in SHAPES]
)
def test_good_answers_are_run_early_and_the_rules_lose_nothing(shape: str, home: Path) -> None:
    both, none = VARIANTS["both"], VARIANTS["none"]
    found = searched(task(shape), both, recorded("both"), budget=_BUDGET, home=str(home))
    first = [proposal.text for number, proposal in found.given if number == 0]
    assert len(first) >= 3
    times = {step.candidate.proposal.text: seconds_of(step) for step in found.steps}
    settings = settings_of(both, _BUDGET, str(home))
    for text in {*first} - {*times}:
        alone = evaluate_once(task(shape), settings, program=text)
        times[text] = seconds_of(Step(Candidate(1, 0, Proposal(text, "", "")), alone.evaluation))
    answers_best = min(times[text] for text in first)
    assert found.curve[_EARLY - 1] >= seconds_of(found.steps[0]) / answers_best / 1.1

    assert len(found.tried) >= 0.8 * len(found.given)

    rules = searched(task(shape), none, RecordedLLM([]), budget=_BUDGET, home=str(home))
    assert found.curve[-1] >= rules.curve[-1]
    assert found.result.speedup >= rules.result.speedup
