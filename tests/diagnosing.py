"""Both kernels of a pair evaluated in one go on one device."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.optimize import prepared, session
from optiml_magic.profilers.levels import Levels
from optiml_magic.settings import resolve
from optiml_magic.testing.findings import Pair
from optiml_magic.testing.findings.tasks import task


def evaluated(pair: Pair, family: str) -> tuple[Evaluation, Evaluation | None]:
    """The faulty kernel, and the sound one where this device can tell."""
    device = "cuda" if family == "cuda" else f"emulated:{pair.chip}"
    with TemporaryDirectory() as home:
        settings = resolve({"device": device, "verify_seeds": 1, "home": Path(home)})
        problem = prepared(task(pair, family), settings)
        cases = [instance.case for instance in problem.instances]
        with session(settings, cases, task=problem.task, machine=True) as members:
            texts = [pair.faulty, *([pair.sound] if family in pair.without else [])]
            candidates = [
                Candidate(number, 0 if number else None, Proposal(text, "", "test"))
                for number, text in enumerate(texts)
            ]
            _brief(members.tools.levels, thorough=pair.name == "ncu_rules")
            found = Evaluator(problem, members.tools)(candidates)
    for evaluation in found:
        assert evaluation.verdict.passed, evaluation.verdict
    return found[0], found[1] if len(found) > 1 else None


def _brief(levels: Levels, *, thorough: bool) -> None:
    """All sections of ncu take seconds, and only its rules need them."""
    complete = levels.complete
    levels.complete = lambda runs, **_: complete(runs, thorough=thorough)  # type: ignore[method-assign]


def lines(evaluation: Evaluation, tool: str) -> list[int]:
    """The lines that a tool named."""
    return [finding.line for finding in evaluation.findings if finding.tool == tool]
