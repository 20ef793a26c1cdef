"""Kernels as courses teach them, each through compiler, device host and verifier; then the rules."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from present import SOAK, sampled

from optiml_magic.evaluation import Evaluator, Tools
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Step
from optiml_magic.model.verdict import Outcome
from optiml_magic.model.view import View
from optiml_magic.optimize import optimize, prepared
from optiml_magic.proposers.rules import RuleProposer
from optiml_magic.session import session
from optiml_magic.settings import Settings, resolve
from optiml_magic.source.program import parse_program
from tests.ideas import made

from .suite import HERE, TASKS

MISSING = {
    "modern/recursion": "a recursive call",
}
# Their answers do not depend on it, but they read what others write meanwhile, and that is told.
RACING = ("sparse/bfs_level", "sparse/union_find")
# What the rules do most with.
SAMPLE = ("images/heat_2d",)


def kernels(names: object) -> list[object]:
    """Parameters of a test; what is missing must fail, so that a mend does not go unseen."""
    return [
        pytest.param(n, marks=[pytest.mark.xfail(reason=MISSING[n])] if n in MISSING else [])
        for n in names  # type: ignore[attr-defined]
    ]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    return resolve({"home": tmp_path_factory.mktemp("optiml"), "device": "emulated"})


@pytest.fixture(scope="module")
def tools(settings: Settings) -> Iterator[Tools]:
    with session(settings) as members:
        yield members.tools


def test_every_program_has_its_task() -> None:
    programs = {f"{p.parent.name}/{p.stem}" for p in HERE.glob("*/*.cu")}
    assert programs == TASKS.keys()
    assert len(programs) >= 60


@pytest.mark.parametrize("name", kernels(sampled(TASKS, 20)))
def test_it_matches_numpy(name: str, tools: Tools, settings: Settings) -> None:
    problem = prepared(TASKS[name], settings)
    root = Candidate(0, None, Proposal(problem.program.text, "the input kernel", "user"))
    (evaluation,) = Evaluator(problem, tools)([root])
    assert evaluation.verdict.outcome is Outcome.PASSED, evaluation.verdict
    assert evaluation.measurement is not None
    step = Step(root, evaluation)
    for proposal in made(RuleProposer().propose(View(step, step), 1).ideas):
        assert parse_program(proposal.text).launches


@pytest.mark.parametrize("name", kernels(TASKS if SOAK else SAMPLE))
def test_what_the_rules_make_of_it_is_right(name: str, settings: Settings) -> None:
    budget = resolve({"home": settings.home, "device": "emulated", "budget": 12 if SOAK else 3})
    steps = optimize(TASKS[name], budget).summary.trajectory.steps
    assert SOAK or len(steps) > 1
    if name in RACING:
        assert steps[0].evaluation.verdict.outcome is Outcome.RACE
        return
    for step in steps:
        assert step.evaluation.verdict.passed, (step.candidate.proposal, step.evaluation.verdict)
