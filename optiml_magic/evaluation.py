"""The order of the stages: compile, verify, measure, diagnose, reward; up to the first failure."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic import binding, rewards
from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.devices.base import Device, Job
from optiml_magic.errors import UsageError
from optiml_magic.findings import Tool, diagnose
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.codec import to_json
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.profilers import emulated
from optiml_magic.profilers.roofline import roofline_class
from optiml_magic.source.program import Program, parse_program
from optiml_magic.verifiers import oracle
from optiml_magic.verifiers.problem import Instance, Problem
from optiml_magic.verifiers.verify import judge, verify


@dataclass(frozen=True)
class Tools:
    """The members that an evaluator works with, chosen by the composition root."""

    compiler: Compiler
    options: CompileOptions
    device: Device
    chip: Chip
    findings: tuple[Tool, ...]
    instructions: int  # budget of one launch


@dataclass(frozen=True)
class _Prepared:
    build: Build
    plans: tuple[tuple[Instance, LaunchPlan], ...]
    identity: str


class Evaluator:
    """Evaluates the candidates of one problem. The first one must be the input kernel."""

    def __init__(self, problem: Problem, tools: Tools) -> None:
        self._problem = problem
        self._tools = tools
        self._instances = problem.instances
        self._root: Measurement | None = None
        self._seen: dict[str, Evaluation] = {}
        for instance in self._instances:
            tools.device.put(instance.case)

    def __call__(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        return [self._timed(candidate) for candidate in candidates]

    def remember(self, candidate: Candidate, evaluation: Evaluation) -> None:
        """Take in an evaluation made earlier, in a run that is resumed."""
        if candidate.number == 0:
            self._root = evaluation.measurement
            self._answer_from_kernel(candidate)
        if evaluation.identity:
            self._seen.setdefault(evaluation.identity, evaluation)

    def _timed(self, candidate: Candidate) -> Evaluation:
        began = time.monotonic()
        evaluation = self._evaluate(candidate)
        return replace(evaluation, seconds_spent=time.monotonic() - began)

    def _evaluate(self, candidate: Candidate) -> Evaluation:
        number = candidate.number
        prepared = self._prepare(candidate.text)
        if isinstance(prepared, Verdict):
            return Evaluation(number, "", prepared)
        earlier = self._seen.get(prepared.identity)
        if earlier is not None:
            return replace(earlier, candidate=number, duplicate_of=earlier.candidate)
        if number == 0:
            refused = self._answer_from_kernel(candidate)
            if refused is not None:
                return Evaluation(number, prepared.identity, refused)
            prepared = replace(prepared, plans=self._with_answers(prepared.plans))
        verdict = verify(
            self._tools.device,
            prepared.build,
            prepared.plans,
            instructions=self._tools.instructions,
            notes=self._problem.notes,
        )
        evaluation = Evaluation(number, prepared.identity, verdict)
        if verdict.passed:
            evaluation = self._measured(evaluation, prepared)
        self._seen[prepared.identity] = evaluation
        return evaluation

    def _prepare(self, text: str) -> _Prepared | Verdict:
        """Parse, compile and bind; a program of the search that does not fit is only invalid."""
        try:
            program = parse_program(text)
            names = binding.kernel_names(program)
            source = program.compiled_text()
        except UsageError as unfit:
            return _invalid(unfit)
        tools = self._tools
        build = tools.compiler.compile(source, names, tools.chip, tools.options)
        if isinstance(build, CompileFailure):
            first = build.errors[0]
            more = f" (and {len(build.errors) - 1} more)" if len(build.errors) > 1 else ""
            return Verdict(Outcome.COMPILE_ERROR, f"{first.message}{more}", line=first.line)
        try:
            plans = tuple((i, self.plan(program, build, i)) for i in self._instances)
        except UsageError as unfit:
            return _invalid(unfit)
        return _Prepared(build, plans, _identity(build, [plan for _, plan in plans]))

    def plan(self, program: Program, build: Build, instance: Instance) -> LaunchPlan:
        """The launches of a program on one instance; UsageError where it does not fit."""
        return binding.plan(
            program,
            self._problem.interface,
            build.names,
            instance.values,
            instance.shapes,
            self._tools.chip,
        )

    def _measured(self, evaluation: Evaluation, prepared: _Prepared) -> Evaluation:
        """Count one more run of the first case, and say what the counts mean."""
        tools, task = self._tools, self._problem.task
        instance, plan = prepared.plans[0]
        job = Job(instance.case.key, plan, 0, True, tools.instructions)
        execution = tools.device.execute(prepared.build, job)
        verdict = judge(execution, instance.seed)
        if not verdict.passed:
            return replace(evaluation, verdict=verdict)
        measured = emulated.measure(tools.chip, prepared.build, plan, execution.counters)
        found = roofline_class(tools.chip, measured, flops=task.flops, bytes_=task.bytes)
        if self._root is None:
            self._root = measured
        return replace(
            evaluation,
            measurement=measured,
            resources=tuple(prepared.build.resources[x.kernel] for x in plan.launches),
            roofline=found,
            findings=diagnose(tools.findings, found, measured),
            reward=rewards.reward(self._root, measured),
        )

    def _answer_from_kernel(self, candidate: Candidate) -> Verdict | None:
        """Without a reference the input kernel's own outputs become the wanted ones."""
        if self._problem.task.reference is not None:
            return None
        prepared = self._prepare(candidate.text)
        if isinstance(prepared, Verdict):
            return prepared
        answered = oracle.answered(
            self._tools.device,
            prepared.build,
            prepared.plans,
            instructions=self._tools.instructions,
            rtol=self._problem.task.rtol,
            atol=self._problem.task.atol,
        )
        if isinstance(answered, Verdict):
            return answered
        self._instances = answered
        for instance in answered:
            self._tools.device.put(instance.case)
        return None

    def _with_answers(
        self, plans: Sequence[tuple[Instance, LaunchPlan]]
    ) -> tuple[tuple[Instance, LaunchPlan], ...]:
        return tuple(
            (instance, plan) for instance, (_, plan) in zip(self._instances, plans, strict=True)
        )


def _invalid(unfit: UsageError) -> Verdict:
    return Verdict(Outcome.INVALID, unfit.message, line=unfit.line or 0, fix=unfit.fix)


def _identity(build: Build, plans: Sequence[LaunchPlan]) -> str:
    """Machine code and launch plans: two texts with one identity are one evaluation."""
    parts = [build.digest, *(to_json(LaunchPlan, plan) for plan in plans)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
