"""Good answers in whole searches: they were written down (``tests/golden/answers``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.llm.tasks import SHAPES, task
from benchmarks.llm.variants import VARIANTS, Searched, recorded, searched, seconds_of, settings_of
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Step
from optiml_magic.optimize import evaluate_once

QUICK = "layer_norm"  # there the rules alone come nowhere near the answers
_EARLY, _BUDGET = 6, 12
_FEWEST = 1e-9  # seconds: what a search comes to is then the same on a busy machine


def search(shape: str, variant: str, home: Path) -> Searched:
    return searched(
        task(shape),
        VARIANTS[variant],
        recorded(variant),
        budget=_BUDGET,
        home=str(home),
        trial_seconds=_FEWEST,
    )


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "shape", [pytest.param(one, marks=[] if one == QUICK else pytest.mark.slow) for one in SHAPES]
)
def test_good_answers_are_run_and_run_early(shape: str, home: Path) -> None:
    found = search(shape, "both", home)
    first = [proposal.text for number, proposal in found.given if number == 0]
    assert len(first) >= 3
    times = {step.candidate.text: seconds_of(step) for step in found.steps}
    settings = settings_of(VARIANTS["both"], _BUDGET, str(home), _FEWEST)
    for text in {*first} - {*times}:
        alone = evaluate_once(task(shape), settings, program=text)
        times[text] = seconds_of(Step(Candidate(1, 0, Proposal(text, "", "")), alone.evaluation))
    answers_best = min(times[text] for text in first)
    assert found.curve[_EARLY - 1] >= seconds_of(found.steps[0]) / answers_best / 1.1
    assert len(found.tried) >= 0.8 * len(found.given)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("shape", SHAPES)
def test_good_answers_take_nothing_from_the_rules(shape: str, home: Path) -> None:
    both, none = (search(shape, variant, home) for variant in ("both", "none"))
    assert both.curve[-1] >= none.curve[-1]
    assert both.result.speedup >= none.result.speedup
