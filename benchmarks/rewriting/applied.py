"""For each rule the shortest program of this repository that it applies to, as examples."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.rewriting.programs import Listed, listed, shown  # noqa: E402
from optiml_magic.chips import chip  # noqa: E402
from optiml_magic.compilers.cached import CachedCompiler  # noqa: E402
from optiml_magic.compilers.nvrtc import NvrtcCompiler  # noqa: E402
from optiml_magic.compilers.options import options_of  # noqa: E402
from optiml_magic.errors import OptimlError  # noqa: E402
from optiml_magic.model.candidate import Candidate, Proposal  # noqa: E402
from optiml_magic.model.evaluation import Evaluation, Step  # noqa: E402
from optiml_magic.model.facts import Facts  # noqa: E402
from optiml_magic.model.idea import Idea  # noqa: E402
from optiml_magic.model.verdict import Outcome, Verdict  # noqa: E402
from optiml_magic.model.view import View  # noqa: E402
from optiml_magic.preparation import Bound, compiled  # noqa: E402
from optiml_magic.problem import prepare  # noqa: E402
from optiml_magic.problem.facts import FactFinder  # noqa: E402
from optiml_magic.proposers.rewrites.base import Rewrite  # noqa: E402
from optiml_magic.settings import resolve  # noqa: E402

_CHIP = chip("h200")


@dataclass(frozen=True)
class Example:
    """A program that a rule applies to, and what it makes of it at its first point."""

    name: str
    title: str
    before: str
    after: str


class _Program:
    """A program at its sizes; compiled where a rule asks for facts."""

    def __init__(self, one: Listed) -> None:
        self.name = one.name
        self._task = one.make()
        self._problem = prepare(self._task, seeds=1)

    @property
    def text(self) -> str:
        return self._problem.program.text

    @cached_property
    def facts(self) -> Facts | None:
        problem, settings = self._problem, resolve()
        compiler = CachedCompiler(NvrtcCompiler(), settings.compiled)
        options = options_of(self._task, settings)
        bound = compiled(problem.program, problem.interface, compiler, options, _CHIP)
        if not isinstance(bound, Bound):
            return None
        first = problem.instances[0]
        return FactFinder(problem, _CHIP)(bound.program, bound.plan(first.values, first.shapes))

    def example(self, rule: Rewrite) -> Example | None:
        """What the rule makes of it first; None where it makes nothing."""
        root = Candidate(0, None, Proposal(self.text, "the input kernel", "user"))
        step = Step(root, Evaluation(0, "", Verdict(Outcome.PASSED, "")))
        view = View(step, step, find_facts=lambda: self.facts)
        for found in rule.propose(self._problem.program, view):
            if isinstance(found, Idea) and isinstance(made := found.make(), str):
                return Example(self.name, found.title, self.text, made)
        return None


def examples(rules: Sequence[Rewrite], survey: dict[str, Any]) -> dict[str, Example]:
    """Of each rule the shortest of the open suite and the known kernels that it applies to.

    Those that the survey saw it verified on come first; where it has none of these, any other
    program of the survey. A rule that applies to none has no example.
    """
    found: dict[str, Example] = {}
    programs: dict[str, _Program] = {}
    for rule in rules:
        for one in _hopeful(rule.name, survey):
            try:
                program = programs.setdefault(one.name, programs.get(one.name) or _Program(one))
                example = program.example(rule)
            except OptimlError:
                continue
            if example is not None:
                found[rule.name] = example
                break
    return found


def _hopeful(name: str, survey: dict[str, Any]) -> Iterator[Listed]:
    """The programs to try, the best first."""
    rows = {row["name"]: row for row in survey.get("rows", ())}
    short = sorted(shown(), key=lambda one: (not _right(name, rows.get(one.name)), one.lines))
    yield from short
    known = [one for one in listed() if _right(name, rows.get(one.name))]
    yield from sorted(known, key=lambda one: rows[one.name]["lines"])


def _right(name: str, row: dict[str, Any] | None) -> bool:
    """Whether the survey saw the rule verified on this program."""
    matches = row["matched"].get(name, ()) if row else ()
    return any(outcome == "passed" for outcomes, _ in matches for outcome in outcomes)
