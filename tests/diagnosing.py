"""Both kernels of a pair evaluated in one go on one device."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.optimize import Session, prepared, session
from optiml_magic.profilers.levels import Levels
from optiml_magic.settings import resolve
from optiml_magic.testing.findings import Pair
from optiml_magic.testing.findings.tasks import task
from optiml_magic.verifiers.problem import Problem


class Diagnoses:
    """Evaluations of pairs; an emulated chip stays open for the next pair.

    A card does not: what ncu wraps is given its cases at the start.
    """

    def __init__(self, family: str) -> None:
        self._family = family
        self._stack = ExitStack()
        self._open: dict[str, Session] = {}

    def __enter__(self) -> Self:
        self._home = Path(self._stack.enter_context(TemporaryDirectory()))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def of(self, pair: Pair) -> tuple[Evaluation, Evaluation | None]:
        """The faulty kernel, and the sound one where this device can tell."""
        device = "cuda" if self._family == "cuda" else f"emulated:{pair.chip}"
        settings = resolve({"device": device, "verify_seeds": 1, "home": self._home})
        problem = prepared(task(pair, self._family), settings)
        if self._family == "cuda":
            cases = [instance.case for instance in problem.instances]
            with session(settings, cases, task=problem.task, machine=True) as members:
                _brief(members.tools.levels, thorough=pair.name == "ncu_rules")
                return self._evaluated(pair, problem, members)
        if device not in self._open:
            members = self._stack.enter_context(session(settings, machine=True))
            self._open[device] = members
        return self._evaluated(pair, problem, self._open[device])

    def _evaluated(
        self, pair: Pair, problem: Problem, members: Session
    ) -> tuple[Evaluation, Evaluation | None]:
        texts = [pair.faulty, *([pair.sound] if self._family in pair.without else [])]
        found = Evaluator(problem, members.tools)(
            [
                Candidate(number, 0 if number else None, Proposal(text, "", "test"))
                for number, text in enumerate(texts)
            ]
        )
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
