"""Faults planted in one kernel and judged one by one, as if each were to win a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from optiml_magic.evaluation import Evaluator
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.verdict import Outcome
from optiml_magic.problem import prepare
from optiml_magic.session import session
from optiml_magic.settings import resolve
from optiml_magic.testing.mutations import Mutant, mutants
from tests.mutations.subjects import SUBJECTS

# What says nothing of the verification: the program could not be run at all.
_STILLBORN = (Outcome.COMPILE_ERROR, Outcome.UNSUPPORTED)


@dataclass(frozen=True)
class Judged:
    """One mutant and its end: ``caught``, ``missed``, ``same`` machine code and launches as the
    original, ``twin`` of a mutant judged before, or ``stillborn``."""

    kernel: str
    operator: str
    name: str
    end: str
    outcome: str
    summary: str


def chosen(text: str, most: int) -> list[Mutant]:
    """At most so many mutants of each operator, spread over the text."""
    by_operator: dict[str, list[Mutant]] = {}
    for mutant in mutants(text):
        by_operator.setdefault(mutant.operator, []).append(mutant)
    return [m for found in by_operator.values() for m in _spread(found, most)]


def trial(kernel: str, home: Path, *, most: int, only: Iterable[str] = ()) -> Iterator[Judged]:
    """Judge the mutants of a kernel; ``only`` names some of them."""
    settings = resolve(
        {"device": "emulated:h200", "instructions": 30_000_000, "run_seconds": 20.0, "home": home}
    )
    problem = prepare(SUBJECTS[kernel](), seeds=3)
    with session(settings, task=problem.task, extent="winners") as members:
        evaluator, numbers = Evaluator(problem, members.tools, thorough=True), count()
        text, names = problem.program.text, set(only)

        def judge(program: str) -> Evaluation:
            number = next(numbers)
            proposal = Proposal(program, "", "test")
            (found,) = evaluator([Candidate(number, None if number == 0 else 0, proposal)])
            return found

        root = judge(text)
        assert root.verdict.passed, root.verdict
        wanted = [m for m in mutants(text) if m.name in names] if names else chosen(text, most)
        for mutant in wanted:
            found = judge(mutant.text)
            end = _end(found)
            verdict = found.verdict
            yield Judged(
                kernel, mutant.operator, mutant.name, end, str(verdict.outcome), verdict.summary
            )


def _end(found: Evaluation) -> str:
    if found.duplicate_of is not None:
        return "twin" if found.duplicate_of else "same"
    if found.verdict.outcome in _STILLBORN or not found.identity:
        return "stillborn"
    return "missed" if found.verdict.passed else "caught"


def _spread(found: list[Mutant], most: int) -> list[Mutant]:
    if len(found) <= most:
        return found
    return [found[at * len(found) // most] for at in range(most)]
