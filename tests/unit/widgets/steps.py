"""Steps, summaries and a toy search to drive the views with."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial

from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation, Step, Trajectory
from optiml_magic.model.finding import Action, Evidence, Finding
from optiml_magic.model.measurement import Bound, Measurement
from optiml_magic.model.refusal import NOTHING, Refused
from optiml_magic.model.suggestion import Suggestion
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.reports.summary import Summary
from optiml_magic.search.controls import Controls
from optiml_magic.search.loop import Budget
from optiml_magic.search.search import TreeSearch
from optiml_magic.widgets.subject import Subject
from tests.unit.search import toy

EVIL = "<script>window.hacked = true</script> & \"quotes\" 'and' {braces}"
SUBJECT = Subject("transpose", "emulated:h200", "auto chose it", budget=24, seconds=300.0)


def finding(cause: str = "strided access") -> Finding:
    evidence = Evidence("sectors", 32.0, 4.0, "sector/request", "emulated", 3)
    return Finding(
        "coalescing", "critical", cause, (evidence,), (Action(f"stage {cause}"),), (1, 3)
    )


def step(
    number: int,
    parent: int | None = 0,
    seconds: float | None = 1e-5,
    *,
    title: str = "",
    outcome: Outcome = Outcome.WRONG,
    duplicate_of: int | None = None,
    findings: tuple[Finding, ...] = (),
) -> Step:
    """A step that passed in ``seconds``, or failed where they are None."""
    passed = seconds is not None
    verdict = Verdict(Outcome.PASSED, "") if passed else Verdict(outcome, f"why {number}")
    measured = None
    if seconds:
        bounds = (Bound("dram", seconds), Bound("issue", seconds / 3))
        measured = Measurement("h200", "estimated", seconds, 1.3, (), bounds, ())
    proposal = Proposal(f"program {number}\nline two\n", title or f"edit {number}", "rules")
    evaluation = Evaluation(
        number, str(number), verdict, measured, findings=findings, duplicate_of=duplicate_of
    )
    return Step(Candidate(number, None if number == 0 else parent, proposal), evaluation)


def some() -> list[Step]:
    """An input kernel, two gains, a failure, a duplicate."""
    return [
        step(0, title="the input kernel", findings=(finding(),)),
        step(1, 0, 5e-6, title="map threads along rows"),
        step(2, 0, None, title="stage a tile"),
        step(3, 1, 2e-6, title="pad the tile", findings=(finding("bank conflicts"),)),
        step(4, 1, 5e-6, duplicate_of=1),
    ]


def summary(steps: Sequence[Step], stopped: str = "budget of 5 evaluations spent") -> Summary:
    trajectory = Trajectory(tuple(steps), stopped)
    return Summary("transpose", "d", "r", "o", "given", (), trajectory, 1.0, None)


@dataclass(frozen=True)
class Outcomes:
    """What a toy search returns in the place of a Result."""

    summary: Summary


def search(
    progress: Callable[[Step, Refused], None],
    controls: Controls,
    *,
    pause: float = 0.0,
    evaluations: int = 40,
    edited: bool = False,
) -> Outcomes:
    """A real search over toy texts that takes ``pause`` seconds for each evaluation.

    It takes what is written by hand where it may be ``edited``.
    """
    by_hand = (lambda *_: controls.take()) if edited else lambda *_: None
    tree = TreeSearch(toy.proposal("0" * toy.BITS), toy.expand, by_hand=by_hand)

    def check(parent: int | None, text: str) -> Suggestion:
        step = tree.step(parent)
        assert step is not None
        return Suggestion(step.candidate.number, text)

    taking = controls.accepting(check, lambda _: None) if edited else nullcontext()
    with taking:
        trajectory = toy.run(
            tree, partial(_evaluate, progress, pause), Budget(evaluations), controls=controls
        )
    return Outcomes(Summary("toy", "none", "toy", "", "", (), trajectory, 0.0, None))


def _evaluate(
    progress: Callable[[Step, Refused], None], pause: float, candidates: Sequence[Candidate]
) -> list[Evaluation]:
    time.sleep(pause)
    evaluations = [_bounded(evaluation) for evaluation in toy.evaluate(candidates)]
    for candidate, evaluation in zip(candidates, evaluations, strict=True):
        progress(Step(candidate, evaluation), NOTHING)
    return evaluations


def _bounded(evaluation: Evaluation) -> Evaluation:
    """With a time model, as any measurement has that a report is drawn from."""
    measured = evaluation.measurement
    if measured is None:
        return evaluation
    bounds = (Bound("dram", measured.seconds), Bound("issue", measured.seconds / 3))
    return replace(evaluation, measurement=replace(measured, bounds=bounds))
