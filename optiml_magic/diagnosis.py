"""What a measurement means: roofline class, findings, reward, and what became of the hypothesis."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property

from optiml_magic import rewards
from optiml_magic.answered import answered
from optiml_magic.chips import Chip
from optiml_magic.devices.base import Job
from optiml_magic.errors import UsageError
from optiml_magic.findings import Subject, Tool, diagnose
from optiml_magic.hypotheses import assess
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.facts import Facts
from optiml_magic.model.finding import Finding
from optiml_magic.model.hit_rates import HitRates
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.objective import ENERGY, Objective, joules_of
from optiml_magic.model.roofline import Roofs
from optiml_magic.problem import Problem
from optiml_magic.problem.facts import FactFinder
from optiml_magic.profilers.roofline import stand
from optiml_magic.profilers.work import LeastWork
from optiml_magic.source.program import Program, parse_program


class Diagnosis:
    """Of the candidates of one search: each against the input kernel and against its parent."""

    def __init__(
        self,
        problem: Problem,
        chip: Chip,
        tools: tuple[Tool, ...],
        roofs: Callable[[], Roofs],
        hit_rates: HitRates,
        objective: Objective = "speed",
    ) -> None:
        self.facts: dict[int, Facts | None] = {}  # of the programs so far, by candidate
        self._finder = FactFinder(problem, chip)
        self._problem = problem
        self._roofs = roofs
        self._chip = chip
        self._tools = tools
        self._hit_rates = hit_rates
        self._objective: Objective = objective
        self._measured: dict[int, Measurement | None] = {}  # by candidate
        self._advised: dict[int, tuple[str, tuple[Finding, ...]]] = {}  # likewise, with its text

    @cached_property
    def _work(self) -> LeastWork:
        problem, first = self._problem, self._problem.instances[0]
        # What computes with arrays of CuPy or torch cannot be followed, and to follow what is slow
        # takes as long again.
        traced = not (problem.homes or problem.is_slow_as_measured)
        task = problem.task if traced else replace(problem.task, reference=None)
        return LeastWork(task, first.values, first.case.buffers)

    def __call__(
        self, candidate: Candidate, evaluation: Evaluation, run: tuple[Build, Job] | None = None
    ) -> Evaluation:
        """The evaluation with all that follows from its figures; ``run`` is what was measured.

        A candidate without one repeats the figures, and the findings, of an earlier one.
        """
        self.remember(candidate, evaluation)
        diagnosed = self._diagnosed(candidate, evaluation, run)
        self._advised[candidate.number] = candidate.text, diagnosed.findings
        return self._tested(candidate, diagnosed)

    def remember(self, candidate: Candidate, evaluation: Evaluation) -> None:
        """Take in what later candidates are compared with."""
        self._measured[candidate.number] = evaluation.measurement
        self._advised[candidate.number] = candidate.text, evaluation.findings

    def find(self, number: int, program: Program, plan: LaunchPlan) -> Facts:
        """The facts of a candidate whose plan binds it to the first instance; they are kept."""
        found = self.facts[number] = self._finder(program, plan)
        return found

    def _diagnosed(
        self, candidate: Candidate, evaluation: Evaluation, run: tuple[Build, Job] | None
    ) -> Evaluation:
        measured = evaluation.measurement
        if measured is None or run is None:
            return evaluation
        build, job = run
        program = parse_program(candidate.text)
        roofs = self._roofs()
        facts = self.find(candidate.number, program, job.plan)
        subject = Subject(self._chip, roofs, measured, program, build, job.plan, facts)
        root = self._measured.get(0) or measured
        if self._objective == "energy" and joules_of(root) is None:
            raise UsageError(
                f"there are no joules to compare: {root.why(ENERGY)}", fix="use --objective speed"
            )
        standing = stand(measured, self._work(root), roofs)
        findings = diagnose(self._tools, standing.kind, subject)
        return replace(
            evaluation,
            roofline=standing.kind,
            standing=standing,
            findings=self._hit_rates.ranked(findings, standing.kind),
            reward=rewards.reward(root, measured, objective=self._objective),
        )

    def _tested(self, candidate: Candidate, evaluation: Evaluation) -> Evaluation:
        """A duplicate repeats the figures of another candidate, but its promise is its own."""
        proposal = candidate.proposal
        if candidate.parent is None:
            return replace(evaluation, test=None, answered=None)
        parent = self._measured.get(candidate.parent)
        before, findings = self._advised.get(candidate.parent, ("", ()))
        hypothesis = proposal.hypothesis
        return replace(
            evaluation,
            test=assess(hypothesis, parent, evaluation) if hypothesis else None,
            answered=answered(proposal.answers, findings, before, candidate.text),
        )
