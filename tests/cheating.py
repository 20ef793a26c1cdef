"""Evaluators for the tasks of the cheats, one for each, on one device."""

from __future__ import annotations

from contextlib import ExitStack
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.verdict import Verdict
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.cheats.tasks import task


class Judges:
    """Evaluators by task; what they need is opened with the first use and closed at the end."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._stack = ExitStack()
        self._numbers = count(1)
        self._found: dict[str, Evaluator] = {}

    def __enter__(self) -> Self:
        self._home = Path(self._stack.enter_context(TemporaryDirectory()))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def candidate(self, text: str) -> Candidate:
        return Candidate(next(self._numbers), 0, Proposal(text, "", "test"))

    def of(self, name: str) -> Evaluator:
        if name not in self._found:
            settings = resolve(
                {"device": self._device, "instructions": 30_000_000, "run_seconds": 10.0,
                 "home": self._home}
            )  # fmt: skip
            problem = prepare(task(name), seeds=3)
            members = self._stack.enter_context(session(settings, task=problem.task))
            evaluator = Evaluator(problem, members.tools, thorough=True)
            root = Candidate(0, None, Proposal(problem.program.text, "", "user"))
            (evaluation,) = evaluator([root])
            assert evaluation.verdict.passed, evaluation.verdict
            self._found[name] = evaluator
        return self._found[name]


def outcome_of(judges: Judges, name: str, text: str) -> Verdict:
    (evaluation,) = judges.of(name)([judges.candidate(text)])
    return evaluation.verdict
