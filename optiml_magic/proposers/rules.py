"""Rewrite rules as a proposer: every rule sees the program and what is known of it."""

from __future__ import annotations

import traceback
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError
from optiml_magic.kernels.allowance import Allowance, TooMuch, check_length
from optiml_magic.kernels.primitives.apart import (
    apart,
    facts_apart,
    kernel_of,
    launched_often,
)
from optiml_magic.kernels.primitives.as_passed import as_passed, facts_as_passed
from optiml_magic.kernels.primitives.concrete import all_concrete
from optiml_magic.kernels.primitives.defined import defined
from optiml_magic.kernels.primitives.expanded import all_expanded
from optiml_magic.kernels.primitives.instantiated import instantiated
from optiml_magic.kernels.primitives.named_numbers import named_numbers
from optiml_magic.kernels.primitives.passed import passed
from optiml_magic.kernels.primitives.told import facts_told, told
from optiml_magic.kernels.primitives.ungrouped import all_ungrouped
from optiml_magic.model.idea import Idea, Ideas
from optiml_magic.model.refusal import Refusal
from optiml_magic.proposers.bounded import Bounded
from optiml_magic.proposers.doubted import doubted
from optiml_magic.proposers.rewrites import REWRITES
from optiml_magic.proposers.rewrites.base import answering, subjects
from optiml_magic.proposers.together import behind, in_step, together, weighed
from optiml_magic.source.program import parse_program

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from optiml_magic.model.evaluation import Step
    from optiml_magic.model.facts import Facts
    from optiml_magic.model.view import View
    from optiml_magic.proposers.rewrites.base import Rewrite
    from optiml_magic.source.program import Program


_DEEP = 4  # templates that call templates; ours
_SHOWN = 160  # characters of an error, which may hold a whole tree


class Contained:
    """A rule that costs its own ideas where it breaks, not the search, and says so."""

    def __init__(self, rule: Rewrite) -> None:
        self.name = rule.name
        self._rule = Bounded(rule)

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        try:
            for found in self._rule.propose(program, view):
                if isinstance(found, Refusal) or found.text is not None:
                    yield found
                else:
                    yield replace(found, make=partial(self._made, found))
        except Exception as error:  # noqa: BLE001  # a fault of the rule
            yield broken(self.name, error)

    def _made(self, idea: Idea) -> str | Refusal:
        try:
            return idea.make()
        except Exception as error:  # noqa: BLE001
            return broken(self.name, error)


def broken(rule: str, error: Exception) -> Refusal:
    """What a rule that raised answers: which error, and where."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    said = f"{type(error).__name__} in {Path(last.filename).name}, line {last.lineno}: {error}"
    return Refusal.failed(rule, " ".join(said.split())[:_SHOWN])


class RuleProposer:
    """Rules are cheap and exact, so all their ideas are given, whatever the count asked for.

    ``exact`` forbids those that change the arithmetic.
    """

    name = "rules"

    def __init__(self, rewrites: Sequence[Rewrite] = REWRITES, *, exact: bool = False) -> None:
        self._rewrites = tuple(map(Contained, rewrites))
        self._exact = exact

    def propose(self, view: View, count: int) -> Ideas:  # see above
        del count
        try:
            with Allowance().spent():
                text = view.step.candidate.text
                program, view = _apart(view)
                findings = view.step.evaluation.findings
                about = subjects(findings, parse_program(text), program)
        except SourceError as unfit:
            return Ideas(refused=(Refusal(self.name, unfit.message, unfit.line or 0),))
        except TooMuch as much:
            return Ideas(refused=(Refusal(self.name, str(much)),))
        ideas: list[Idea] = []
        refused = dict.fromkeys(_out_of_sight(program))
        for rewrite in self._rewrites:
            for found in rewrite.propose(program, view):
                if isinstance(found, Refusal):
                    refused[found] = None
                elif self._exact and found.arithmetic:
                    refused[_inexact(found)] = None
                else:
                    ideas.append(answering(found, findings, about))
        ideas = doubted(ideas, view.evaluated)
        more = [*together(ideas, view, self._again)]
        ideas = in_step(ideas, more, view, self._again)
        ideas = [*behind(weighed(ideas, program, view), more), *more]
        return Ideas(tuple(sorted(ideas, key=lambda idea: -idea.prior)), tuple(refused))

    def _again(self, rule: str, program: Program, view: View) -> Iterator[Idea | Refusal]:
        return next(r for r in self._rewrites if r.name == rule).propose(program, view)


def _out_of_sight(program: Program) -> Iterator[Refusal]:
    """Why no rule looks at kernels that share one text among their launches."""
    lines = {kernel_of(launch): launch.line for launch in program.launches}
    for own, count in launched_often(program).items():
        reason = f"no rule looks at `{own}`, of which there are {count} launches"
        yield Refusal(RuleProposer.name, reason, lines[own])


def _apart(view: View) -> tuple[Program, View]:
    """The program, and the view of it, where each launch has a plain kernel of its own."""
    check_length(view.step.candidate.text)
    program = parse_program(view.step.candidate.text)
    inputs = view.facts.launches[0].inputs if view.facts and view.facts.launches else {}
    own = plain(program, inputs)
    root = _with(view.root, inputs)
    origin = _with(view.origin, inputs) if view.origin is not None else None
    if own is program:  # as what a step made of such kernels is, but the input program is not
        same = (root, origin) == (view.root, view.origin)
        return program, view if same else replace(view, root=root, origin=origin)
    return own, replace(
        view, step=_with(view.step, inputs), root=root, origin=origin,
        find_facts=lambda: _facts(view, program, own),
    )  # fmt: skip


def _facts(view: View, program: Program, own: Program) -> Facts | None:
    """What is known of the launches of a program, of those that it has ``own`` kernels for."""
    before = _apiece(program)
    found = facts_as_passed(facts_apart(view.facts, program, own), before, as_passed(before), own)
    return facts_told(found, own)


def _in_place(program: Program) -> Program:
    """The program with what its kernels call in them, also what that calls in turn."""
    for _ in range(_DEEP):
        before, program = program, all_expanded(all_concrete(program))
        if program is before:
            break
    return program


def plain(program: Program, inputs: Mapping[str, int]) -> Program:
    """A kernel for each launch, with its sizes, its numbers and what it calls, in plain words."""
    own = told(_in_place(all_ungrouped(as_passed(_apiece(program)))), inputs)
    return defined(own, inputs)


def _apiece(program: Program) -> Program:
    """A kernel for each launch, with the numbers of it."""
    return passed(instantiated(apart(named_numbers(program))))


def _with(step: Step, inputs: Mapping[str, int]) -> Step:
    """A step as if each launch of its program had a plain kernel of its own."""
    candidate = step.candidate
    text = plain(parse_program(candidate.text), inputs).text
    if text == candidate.text:
        return step
    proposal = replace(candidate.proposal, text=text)
    return replace(step, candidate=replace(candidate, proposal=proposal))


def _inexact(idea: Idea) -> Refusal:
    changes = " and ".join(idea.arithmetic)
    return Refusal(idea.proposer, f"changes {changes}, and --exact forbids it")
