"""Contract suites for tools, profilers and rules, of this package and of others.

A test subclasses the suite and gives the fixture that it asks for: ``tool``, ``profiler`` or
``rule``. All run on the known kernels at small sizes, on the emulated device, without a GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

from optiml_magic.devices.base import Job
from optiml_magic.evaluation import Evaluator
from optiml_magic.findings import Subject, Tool
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.codec import from_json, to_json
from optiml_magic.model.evaluation import Evaluation, Step
from optiml_magic.model.finding import Finding
from optiml_magic.model.idea import Idea
from optiml_magic.model.measurement import Measurement, Missing
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.model.view import View
from optiml_magic.preparation import Bound, compiled
from optiml_magic.problem import Problem, prepare
from optiml_magic.problem.facts import FactFinder
from optiml_magic.profilers.base import AddedProfiler
from optiml_magic.proposers.rewrites.base import Rewrite
from optiml_magic.session import Session, session
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program
from optiml_magic.testing.kernels import known_task

_SMALL = {
    "transpose_naive": {"rows": 96, "cols": 64},
    "row_sum_naive": {"rows": 160, "cols": 64},
    "softmax": {"rows": 24, "cols": 100},
}
_MOST = 2  # ideas of one rule and kernel that are run
_NAME = re.compile(r"[a-z][a-z0-9_]*")


@contextmanager
def _evaluator(name: str) -> Iterator[tuple[Problem, Session, Evaluator]]:
    """One known kernel on the emulated device; of it stays no more than what was compiled."""
    task = known_task(name, **_SMALL[name])
    problem = prepare(task, seeds=1)
    with session(resolve({"device": "emulated"}), task=task, machine=True) as members:
        yield problem, members, Evaluator(problem, members.tools)


@cache
def _subjects() -> tuple[Subject, ...]:
    """The known kernels as measured on the emulated device."""
    return tuple(_subject(name) for name in _SMALL)


def _subject(name: str) -> Subject:
    with _evaluator(name) as (problem, members, evaluator):
        (found,) = evaluator([_candidate(0, problem.program.text)])
        build, job = _run(problem, members)
        assert found.measurement is not None
        tools, measured, program = members.tools, found.measurement, problem.program
        facts = FactFinder(problem, tools.chip)(program, job.plan)
        return Subject(tools.chip, tools.roofs(), measured, program, build, job.plan, facts)


def _run(problem: Problem, members: Session) -> tuple[Build, Job]:
    """The input kernel compiled, and its launches on the first instance."""
    tools, program, interface = members.tools, problem.program, problem.interface
    bound = compiled(program, interface, tools.compiler, tools.options, tools.chip)
    assert isinstance(bound, Bound), bound
    first = problem.instances[0]
    plan = bound.plan(first.values, first.shapes)
    return bound.build, Job(first.case.key, plan, 0, False, tools.instructions)


class ToolContract:
    """What every micro-profiling tool must do; the fixture ``tool`` gives one."""

    def test_it_says_what_it_is(self, tool: Tool) -> None:
        assert _NAME.fullmatch(tool.name)
        assert tool.classes <= {"memory", "compute", "latency", "launch", "mixed"}
        assert tool.classes
        assert all("__" in metric for metric in tool.metrics)

    def test_it_is_silent_where_nothing_was_measured(self, tool: Tool) -> None:
        for subject in _subjects():
            bare = replace(subject.measured, metrics=(), bounds=(), kernels=(), rules=())
            assert list(tool.diagnose(replace(subject, measured=bare))) == []

    def test_what_it_finds_is_whole_and_the_same_each_time(self, tool: Tool) -> None:
        for subject in _subjects():
            found = list(tool.diagnose(subject))
            assert found == list(tool.diagnose(subject))
            for finding in found:
                self._check(tool, subject, finding)

    @staticmethod
    def _check(tool: Tool, subject: Subject, finding: Finding) -> None:
        assert finding.tool == tool.name
        assert finding.cause.endswith(".")
        assert "\n" not in finding.cause
        assert finding.evidence
        assert finding.actions
        assert 1.0 <= finding.gain[0] <= finding.gain[1] < float("inf")
        lines = len(subject.program.text.splitlines())
        assert all(0 <= evidence.line <= lines for evidence in finding.evidence)
        assert all(1.0 <= a.factor[0] <= a.factor[1] for a in finding.actions)
        assert from_json(Finding, to_json(Finding, finding)) == finding


class ProfilerContract:
    """What every added profiler must do; the fixture ``profiler`` gives one."""

    def test_it_adds_figures_or_says_why_not(self, profiler: AddedProfiler) -> None:
        assert _NAME.fullmatch(profiler.name)
        with _evaluator("transpose_naive") as (problem, members, evaluator):
            (root,) = evaluator([_candidate(0, problem.program.text)])
            build, job = _run(problem, members)
            assert root.measurement is not None
            found, again = (
                profiler.measure(members.tools.device, build, job, root.measurement)
                for _ in range(2)
            )
        if isinstance(found, Missing):
            assert found.reason
            return
        assert not isinstance(again, Missing)
        names = [metric.name for metric in found]
        assert len(names) == len(set(names))
        assert not set(names) & {metric.name for metric in root.measurement.metrics}
        assert [metric.name for metric in again] == names
        assert all(metric.unit and "__" in metric.name for metric in found)
        measured = replace(root.measurement, metrics=tuple(found))
        assert from_json(Measurement, to_json(Measurement, measured)) == measured


class RuleContract:
    """What every rewrite rule must do; the fixture ``rule`` gives one."""

    def test_its_ideas_are_other_programs_with_a_promise(self, rule: Rewrite) -> None:
        assert _NAME.fullmatch(rule.name)
        for name in _SMALL:
            text = known_task(name).text
            ideas, refused = _answer(rule, text)
            again, refused_again = _answer(rule, text)
            made, made_again = _made(ideas), _made(again)
            assert made == made_again
            assert [idea.key for idea in ideas] == [idea.key for idea in again]
            assert len({idea.key for idea in ideas}) == len(ideas)
            assert refused == refused_again
            assert all(refusal.rule == rule.name and refusal.reason for refusal in refused)
            for proposal in made:
                assert proposal.proposer == rule.name
                assert proposal.title
                assert proposal.text != text
                assert parse_program(proposal.text).launches
                assert proposal.hypothesis is not None
                assert 0.0 < proposal.prior < 1.0
                assert from_json(Proposal, to_json(Proposal, proposal)) == proposal

    def test_what_it_rewrites_means_the_same(self, rule: Rewrite) -> None:
        for name in _SMALL:
            found = _made(_answer(rule, known_task(name).text)[0])[:_MOST]
            if not found:
                continue
            with _evaluator(name) as (problem, _, evaluator):
                evaluator([_candidate(0, problem.program.text)])
                asked = [Candidate(at, 0, made) for at, made in enumerate(found, start=1)]
                for evaluation in evaluator(asked):
                    assert evaluation.verdict.outcome is Outcome.PASSED, evaluation.verdict


def _answer(rule: Rewrite, text: str) -> tuple[list[Idea], list[Refusal]]:
    """What a rule says of a program that nothing was found in."""
    step = Step(_candidate(0, text), Evaluation(0, "", Verdict(Outcome.PASSED, "")))
    found = list(rule.propose(parse_program(text), View(step, step)))
    ideas = [one for one in found if isinstance(one, Idea)]
    return ideas, [one for one in found if isinstance(one, Refusal)]


def _made(ideas: Sequence[Idea]) -> list[Proposal]:
    made = ((idea, idea.make()) for idea in ideas)
    return [idea.proposal(text) for idea, text in made if isinstance(text, str)]


def _candidate(number: int, text: str) -> Candidate:
    return Candidate(number, None, Proposal(text, "the input kernel", "user"))
