"""The order of the stages: compile, verify, measure, diagnose, reward; up to the first failure."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from optiml_magic import binding, rewards
from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.devices.base import Device, Execution, Fault, Job
from optiml_magic.errors import KernelFailed, SourceError, UsageError
from optiml_magic.findings import Subject, Tool, diagnose
from optiml_magic.model.build import Build, CompileFailure, Diagnostic
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.roofline import Roofs
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.profilers.base import Profiler
from optiml_magic.profilers.events import EventsProfiler
from optiml_magic.profilers.levels import Levels
from optiml_magic.profilers.roofline import stand
from optiml_magic.profilers.work import LeastWork
from optiml_magic.source.program import Program, parse_program
from optiml_magic.verifiers import oracle
from optiml_magic.verifiers.hazards import Inspection, Inspector, inspected
from optiml_magic.verifiers.identity import identity
from optiml_magic.verifiers.problem import Instance, Problem
from optiml_magic.verifiers.scrutiny import Scrutiny
from optiml_magic.verifiers.trials import Compiled
from optiml_magic.verifiers.verify import judge, verify

_AFTER = "a randomly chosen buffer set, after timing"

# Which candidates are inspected for hazards: all that run, those that would be the best so far, or
# only an input kernel that is to be its own oracle.
Extent = Literal["all", "winners", "oracle"]


@dataclass(frozen=True)
class Tools:
    """The members that an evaluator works with, chosen by the composition root."""

    compiler: Compiler
    options: CompileOptions
    device: Device
    chip: Chip
    profiler: Profiler
    findings: tuple[Tool, ...]
    instructions: int  # budget of one launch, where the device can count
    levels: Levels  # beside the durations, asked once for each batch
    roofs: Callable[[], Roofs]  # of the chip; the first call may measure them
    inspector: Inspector | None = None  # of hazards, where somebody can look for them
    extent: Extent = "winners"


@dataclass(frozen=True)
class _Prepared:
    program: Compiled
    plans: tuple[tuple[Instance, LaunchPlan], ...]  # the given sizes, then those learned
    identity: str
    notes: tuple[str, ...] = ()

    @property
    def build(self) -> Build:
        return self.program.build


class Evaluator:
    """Evaluates the candidates of one problem. The first one must be the input kernel."""

    def __init__(self, problem: Problem, tools: Tools, *, thorough: bool = False) -> None:
        self._problem = problem
        self._thorough = thorough  # every candidate as if it would win
        self._tools = tools
        self._instances = problem.instances
        self._root: Measurement | None = None
        first = problem.instances[0]
        self._work = LeastWork(problem.task, first.values, first.case.buffers)
        self._seen: dict[str, Evaluation] = {}
        self._scrutiny = Scrutiny(problem, tools.device, tools.chip, tools.instructions)
        self._fresh: dict[int, tuple[Build, Job]] = {}  # of this batch, to be counted
        self._best = float("inf")  # seconds of the fastest that may win
        self._inspections: dict[str, Inspection] = {}  # by identity
        self.notes: tuple[str, ...] = ()
        for instance in self._instances:
            tools.device.put(instance.case)

    def __call__(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        """Verify and time each, count what passed in one go, then say what it all means."""
        self._fresh.clear()
        evaluations = self._counted([self._timed(candidate) for candidate in candidates])
        pairs = zip(candidates, evaluations, strict=True)
        diagnosed = [self._diagnosed(candidate, evaluation) for candidate, evaluation in pairs]
        for evaluation in diagnosed:
            if evaluation.identity and evaluation.duplicate_of is None:
                self._seen[evaluation.identity] = evaluation
        return diagnosed

    def settle(self, candidates: Sequence[Candidate]) -> dict[int, Measurement | Verdict]:
        """The finalists timed once more against the input kernel, all in turn; by number.

        One that was never the fastest is scrutinised now, and a verdict stands in its place where
        it fails. Empty on a device whose times are estimated, or where a finalist faults this time.
        """
        profiler = self._tools.profiler
        if not isinstance(profiler, EventsProfiler):
            return {}
        settled: dict[int, Measurement | Verdict] = {}
        runs: dict[int, tuple[Build, Job]] = {}
        for candidate in candidates:
            prepared = self._prepare(candidate.text)
            if isinstance(prepared, Verdict):
                settled[candidate.number] = prepared
                continue
            first = _verified(prepared.plans)[0][0]
            verdict = self._scrutiny.correctness(prepared.program, prepared.identity, first)
            if verdict.passed:
                runs[candidate.number] = (prepared.build, self._job(prepared))
            else:
                settled[candidate.number] = verdict
        timed = profiler.settle(list(runs.values()))
        if isinstance(timed, Fault):
            self._note("the finalists could not be timed once more")
            return {}
        for number, found in zip([0, *runs], timed, strict=True):
            settled[number] = self._settled(number, found)
        return settled

    def _settled(self, number: int, found: Measurement | Execution) -> Measurement | Verdict:
        if isinstance(found, Execution):
            return judge(found, _AFTER)
        return (self._scrutiny.impossible(found) if number else None) or found

    def remember(self, candidate: Candidate, evaluation: Evaluation) -> None:
        """Take in an evaluation made earlier, in a run that is resumed."""
        if candidate.number == 0:
            self._root = evaluation.measurement
            if self._root is None:
                return
            refused = self._answer_from_kernel(candidate)
            if refused is not None:
                raise KernelFailed(f"the input kernel passed before, and now: {refused.summary}")
            prepared, profiler = self._prepare(candidate.text), self._tools.profiler
            if isinstance(prepared, _Prepared):
                self._learn(evaluation, candidate, prepared)
            if isinstance(profiler, EventsProfiler) and isinstance(prepared, _Prepared):
                profiler.remember(prepared.build, self._job(prepared), self._root.seconds)
        if evaluation.verdict.passed and evaluation.measurement:
            self._best = min(self._best, evaluation.measurement.seconds)
        if evaluation.identity:
            self._seen.setdefault(evaluation.identity, evaluation)

    def _note(self, text: str) -> None:
        self.notes = self.notes if text in self.notes else (*self.notes, text)

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
            _verified(prepared.plans),
            instructions=self._tools.instructions,
            notes=(*self._problem.notes, *prepared.notes),
        )
        evaluation = Evaluation(number, prepared.identity, verdict)
        if verdict.passed:
            evaluation = self._measured(evaluation, prepared)
        evaluation = self._inspected(self._challenged(evaluation, prepared), prepared)
        measured = evaluation.measurement
        if measured is not None and evaluation.verdict.passed:
            self._best = min(self._best, measured.seconds)
            if number == 0:
                evaluation = self._learn(evaluation, candidate, prepared)
        self._seen[evaluation.identity] = evaluation  # its diagnosis follows with the batch
        return evaluation

    def _prepare(self, text: str) -> _Prepared | Verdict:
        """Parse, compile and bind; a program of the search that does not fit is only invalid."""
        try:
            program = parse_program(text)
            if program.inits != self._problem.program.inits:
                raise SourceError(
                    "what the outputs hold before the launch belongs to the task",
                    fix="keep the init directives of the input kernel",
                )
            names = binding.name_expressions(program, self._problem.interface)
            source = binding.checked_text(program, self._problem.interface)
        except UsageError as unfit:
            return _invalid(unfit)
        tools = self._tools
        build = tools.compiler.compile(source, names, tools.chip, tools.options)
        if isinstance(build, CompileFailure):
            misfit = binding.misfit(program, self._problem.interface, build)
            if misfit is not None:
                return _invalid(misfit)
            first = build.errors[0]
            more = f" (and {len(build.errors) - 1} more)" if len(build.errors) > 1 else ""
            summary, fix = f"{first.message}{more}", _advice(first, self._problem.notes)
            return Verdict(Outcome.COMPILE_ERROR, summary, line=first.line, fix=fix)
        compiled = Compiled(build, partial(self.plan, program, build))
        try:
            given = [(i, compiled.plan(i)) for i in self._instances]
            learned, skipped = self._scrutiny.trials.plans(compiled)
        except UsageError as unfit:
            return _invalid(unfit)
        plans = (*given, *learned)
        notes = (f"its `require` leaves {skipped} other sets of inputs out",) if skipped else ()
        same = identity(self._problem, compiled, [plan for _, plan in plans])
        return _Prepared(compiled, plans, same, notes)

    def plan(self, program: Program, build: Build, instance: Instance) -> LaunchPlan:
        """The launches of a program on one instance; UsageError where it does not fit."""
        return binding.plan(
            program,
            self._problem.interface,
            build,
            instance.values,
            instance.shapes,
            self._tools.chip,
        )

    def _measured(self, evaluation: Evaluation, prepared: _Prepared) -> Evaluation:
        """Measure the first case."""
        job = self._job(prepared)
        measured = self._tools.profiler.measure(prepared.build, job)
        if isinstance(measured, Fault):
            return replace(evaluation, verdict=judge(Execution(measured)))
        if isinstance(measured, Execution):
            return replace(evaluation, verdict=judge(measured, _AFTER))
        self._fresh[evaluation.candidate] = (prepared.build, job)
        resources = tuple(prepared.build.resources[x.kernel] for x in job.plan.launches)
        return replace(evaluation, measurement=measured, resources=resources)

    def _learn(self, root: Evaluation, candidate: Candidate, prepared: _Prepared) -> Evaluation:
        """Try other inputs on the input kernel; its identity covers those that it gets right."""
        assert root.measurement is not None
        told = self._scrutiny.learn(prepared.program, root.measurement)
        for note in told:
            self._note(note)
        again = self._prepare(candidate.text)
        assert isinstance(again, _Prepared)
        notes = (*root.verdict.notes, told[0])
        return replace(root, identity=again.identity, verdict=replace(root.verdict, notes=notes))

    def _challenged(self, evaluation: Evaluation, prepared: _Prepared) -> Evaluation:
        """Every further check, where the candidate would be the best so far: no other can win."""
        measured = evaluation.measurement
        wins = measured is not None and measured.seconds <= self._best
        if measured is None or evaluation.candidate == 0 or not (wins or self._thorough):
            return evaluation
        first = _verified(prepared.plans)[0][0]
        found = self._scrutiny.verdict(prepared.program, prepared.identity, first, measured)
        if not found.passed:
            self._fresh.pop(evaluation.candidate, None)
            return Evaluation(evaluation.candidate, evaluation.identity, found)
        notes = (*evaluation.verdict.notes, *found.notes)
        return replace(evaluation, verdict=replace(evaluation.verdict, notes=notes))

    def _inspected(self, evaluation: Evaluation, prepared: _Prepared) -> Evaluation:
        """Look for hazards on the first case, where the candidate would be the best so far.

        Nothing slower can win, and looking costs more than running. Asked to look at all, also at
        a wrong one: a race says why.
        """
        tools, verdict = self._tools, evaluation.verdict
        seconds = evaluation.measurement.seconds if evaluation.measurement else float("inf")
        wins = tools.extent == "winners" and verdict.passed and seconds <= self._best
        ran = tools.extent == "all" and (verdict.passed or verdict.outcome is Outcome.WRONG)
        if not (wins or ran):
            return evaluation
        verdict = inspected(verdict, self._inspection(prepared))
        if verdict.passed:
            return replace(evaluation, verdict=verdict)
        return Evaluation(evaluation.candidate, evaluation.identity, verdict)

    def _inspection(self, prepared: _Prepared) -> Inspection:
        inspector = self._tools.inspector
        if inspector is None:
            return Inspection(())
        found = self._inspections.get(prepared.identity)
        if found is None:
            # The first that is verified: of a large task a small one.
            job = self._job(replace(prepared, plans=_verified(prepared.plans)))
            found = inspector.inspect(prepared.build, job)
            self._inspections[prepared.identity] = found
        return found

    def _job(self, prepared: _Prepared) -> Job:
        instance, plan = prepared.plans[0]
        return Job(instance.case.key, plan, 0, False, self._tools.instructions)

    def _counted(self, evaluations: list[Evaluation]) -> list[Evaluation]:
        """The counters of the whole batch, where a tool gives them; said once where it refuses."""
        completed = self._tools.levels.completed(evaluations, self._fresh)
        for note in self._tools.levels.notes:
            self._note(note)
        return completed

    def _diagnosed(self, candidate: Candidate, evaluation: Evaluation) -> Evaluation:
        """The roofline class, the findings and the reward of what was measured."""
        tools, measured = self._tools, evaluation.measurement
        if measured is None or evaluation.duplicate_of is not None:
            return evaluation
        if self._root is None:
            self._root = measured
        roofs = tools.roofs()
        standing = stand(measured, self._work(self._root), roofs)
        build, job = self._fresh[evaluation.candidate]
        buffers = {b.name: b.array.nbytes for b in self._instances[0].case.buffers}
        program = parse_program(candidate.text)
        subject = Subject(tools.chip, roofs, measured, program, build, job.plan, buffers)
        return replace(
            evaluation,
            roofline=standing.kind,
            standing=standing,
            findings=diagnose(tools.findings, standing.kind, subject),
            reward=rewards.reward(self._root, measured),
        )

    def _answer_from_kernel(self, candidate: Candidate) -> Verdict | None:
        """Without a reference the input kernel's own outputs become the wanted ones."""
        if self._problem.task.reference is not None:
            return None
        prepared = self._prepare(candidate.text)
        if isinstance(prepared, Verdict):
            return prepared
        verdict = inspected(Verdict(Outcome.PASSED, ""), self._inspection(prepared))
        if not verdict.passed:
            return verdict
        answered = oracle.answered(
            self._tools.device,
            prepared.build,
            _verified(prepared.plans),
            instructions=self._tools.instructions,
            rtol=self._problem.task.rtol,
            atol=self._problem.task.atol,
        )
        if isinstance(answered, Verdict):
            return answered
        self._instances = (*(i for i in self._instances if not i.verified), *answered)
        for instance in answered:
            self._tools.device.put(instance.case)
        return None

    def _with_answers(
        self, plans: Sequence[tuple[Instance, LaunchPlan]]
    ) -> tuple[tuple[Instance, LaunchPlan], ...]:
        return tuple(
            (instance, plan) for instance, (_, plan) in zip(self._instances, plans, strict=False)
        )


def _verified(
    plans: Sequence[tuple[Instance, LaunchPlan]],
) -> tuple[tuple[Instance, LaunchPlan], ...]:
    return tuple((instance, plan) for instance, plan in plans if instance.verified)


def _advice(error: Diagnostic, notes: Sequence[str]) -> str:
    """What to do about an undefined name that was taken for the host's."""
    name = re.search(r'identifier "(\w+)" is undefined', error.message)
    taken = [n for n in notes if name and n.startswith(f"dropped host function `{name[1]}`")]
    return f"{taken[0]}: mark it __device__" if taken else ""


def _invalid(unfit: UsageError) -> Verdict:
    return Verdict(Outcome.INVALID, unfit.message, line=unfit.line or 0, fix=unfit.fix)
