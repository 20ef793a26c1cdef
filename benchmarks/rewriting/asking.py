"""Every rule asked about one program, and what it makes of it run beside the program."""

from __future__ import annotations

import itertools
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.rewriting.programs import Listed, listed  # noqa: E402
from optiml_magic.errors import OptimlError  # noqa: E402
from optiml_magic.evaluation import Evaluator  # noqa: E402
from optiml_magic.model.candidate import Candidate, Proposal  # noqa: E402
from optiml_magic.model.evaluation import Evaluation, Step  # noqa: E402
from optiml_magic.model.facts import Facts  # noqa: E402
from optiml_magic.model.idea import Idea  # noqa: E402
from optiml_magic.model.refusal import Refusal  # noqa: E402
from optiml_magic.model.view import View  # noqa: E402
from optiml_magic.optimize import prepared  # noqa: E402
from optiml_magic.proposers.bounded import Bounded  # noqa: E402
from optiml_magic.proposers.rewrites import REWRITES  # noqa: E402
from optiml_magic.proposers.rewrites.base import Rewrite  # noqa: E402
from optiml_magic.session import session  # noqa: E402
from optiml_magic.settings import resolve  # noqa: E402
from optiml_magic.source.program import Program, parse_program  # noqa: E402
from tests.ideas import points  # noqa: E402

_COUNTED = 20_000_000  # instructions of a launch that are counted whole, as the suite does
_TRIALS = 3.0  # seconds of other inputs for a program that beats those before it
Row = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Asked:
    """What is done: which rules, how many points of each match, on which device."""

    rules: tuple[str, ...]
    points: int
    device: str
    home: str


@cache
def _all() -> dict[str, Listed]:
    return {one.name: one for one in listed()}


def surveyed(name: str, asked: Asked) -> Row:
    """What became of one program; ``root`` is the outcome of the program itself.

    Where that is another than ``passed`` the rules are asked, but nothing is run.
    """
    one, began = _all()[name], time.process_time()
    row: Row = {"name": name, "origin": one.origin, "size": one.size, "asked": [*asked.rules]}
    settings = resolve(
        {
            "device": asked.device, "llm": "none", "experience": "none", "verify_seeds": 1,
            "trial_seconds": _TRIALS, "count_instructions": _COUNTED, "home": asked.home,
        }
    )  # fmt: skip
    wall = time.monotonic()
    try:
        task = one.make()
        problem = prepared(task, settings)
        with session(settings, task=task, extent="all") as members:
            members.begin(problem)
            evaluator = Evaluator(problem, members.tools)
            row |= _Look(evaluator, problem.program.text, asked).row()
    except OptimlError as error:
        row |= {"root": f"{type(error).__name__}: {error}".splitlines()[0], "rules": {}}
    row["seconds"] = round(time.process_time() - began, 2)
    row["wall"] = round(time.monotonic() - wall, 1)
    return row


class _Look:
    """One program under the eyes of the rules."""

    def __init__(self, evaluator: Evaluator, text: str, asked: Asked) -> None:
        self._evaluator, self._asked = evaluator, asked
        self._numbers = itertools.count(1)
        root = Candidate(0, None, Proposal(text, "the input kernel", "user"))
        (found,) = evaluator([root])
        self._root = Step(root, found)
        self._crashes: list[Row] = []
        self._made: dict[str, Candidate] = {}  # the first of each rule

    def row(self) -> Row:
        """What the rules do with the program, then with what each made of it."""
        rules = {rule.name: self._rule(rule) for rule in self._rules()}
        again = {rule.name: self._again(rule) for rule in self._rules()} if self._made else {}
        found = self._root.evaluation
        return {
            "root": str(found.verdict.outcome),
            "lines": len(self._root.candidate.text.splitlines()),
            "named": sorted(
                {(a.rewrite, f.tool) for f in found.findings for a in f.actions if a.rewrite}
            ),
            "rules": rules,
            "again": again,
            "crashes": self._crashes,
        }

    def _rules(self) -> Iterator[Rewrite]:
        return (Bounded(rule) for rule in REWRITES if rule.name in self._asked.rules)

    def _rule(self, rule: Rewrite) -> Row:
        matches: list[Row] = []
        refused: list[tuple[str, int]] = []
        for found in self._proposed(rule, self._root):
            made = found if isinstance(found, Refusal) else self._caught(rule, found.make)
            if isinstance(made, Refusal):
                refused.append((made.reason, made.line))
            elif made is not None and isinstance(found, Idea):
                matches.append(self._match(found, made))
        return {"matches": matches, "refused": sorted(set(refused))}

    def _match(self, idea: Idea, text: str) -> Row:
        expected = idea.hypothesis
        before = {tune.name for tune in parse_program(self._root.candidate.text).tunes}
        program = parse_program(text)
        tried = points(idea, text)[: self._asked.points]
        return {
            "title": idea.title,
            "open": {t.name: t.values for t in program.tunes if t.name not in before},
            "starts": len(idea.starts),
            "expected": expected
            and [expected.metric, expected.direction, *expected.factor, expected.because],
            "arithmetic": idea.arithmetic,
            "dispatch": len(program.launches) > len(program.alternatives),
            "points": [self._point(idea, point) for point in tried],
        }

    def _point(self, idea: Idea, text: str) -> Row:
        candidate = Candidate(next(self._numbers), 0, idea.proposal(text))
        row: Row = {"numbers": _numbers(parse_program(text))}
        root = self._root.evaluation
        if not root.verdict.passed:
            self._made.setdefault(idea.proposer, candidate)
            return {**row, "outcome": "not run"}
        try:
            (found,) = self._evaluator([candidate])
        except Exception as error:  # noqa: BLE001  # a fact of the survey; the rest goes on
            self._crash(idea.proposer, error)
            return {**row, "outcome": "crashed here"}
        if not found.verdict.passed:
            return {**row, "outcome": str(found.verdict.outcome), "why": found.verdict.summary}
        self._made.setdefault(idea.proposer, candidate)
        return {**row, "outcome": "passed", **_gain(root, found)}

    def _again(self, rule: Rewrite) -> Row:
        """The rule on what each rule made first; its first idea there is made, and not run."""
        count = {"programs": 0, "matches": 0, "refused": 0}
        for candidate in self._made.values():
            verdict = self._root.evaluation.verdict
            found = [*self._proposed(rule, Step(candidate, Evaluation(0, "", verdict)))]
            ideas = [one for one in found if isinstance(one, Idea)]
            late = [self._caught(rule, idea.make) for idea in ideas[:1]]
            refused = sum(isinstance(one, Refusal) for one in (*found, *late))
            count["programs"] += 1
            count["matches"] += len(ideas) - sum(isinstance(one, Refusal) for one in late)
            count["refused"] += refused
        return count

    def _proposed(self, rule: Rewrite, step: Step) -> Sequence[Idea | Refusal]:
        def facts() -> Facts | None:
            return self._evaluator.facts(step.candidate)

        view = View(step, self._root, find_facts=facts)
        program = parse_program(step.candidate.text)
        return self._caught(rule, lambda: [*rule.propose(program, view)]) or []

    def _caught(self, rule: Rewrite, work: Callable[[], T]) -> T | None:
        try:
            return work()
        except Exception as error:  # noqa: BLE001  # what the survey looks for
            self._crash(rule.name, error)
            return None

    def _crash(self, rule: str, error: Exception) -> None:
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{Path(last.filename).name}:{last.lineno}"
        self._crashes.append({"rule": rule, "error": f"{type(error).__name__}: {error}, {place}"})


def _numbers(program: Program) -> dict[str, int | None]:
    return {tune.name: tune.value for tune in program.tunes}


def _gain(before: Evaluation, after: Evaluation) -> Row:
    if before.measurement is None or after.measurement is None:
        return {}
    same = {"same": True} if after.duplicate_of == before.candidate else {}
    return {**same, "times": round(before.measurement.seconds / after.measurement.seconds, 4)}
