"""The order of the stages: compile, verify, measure, diagnose, reward; up to the first failure."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from optiml_magic.chips import Chip
from optiml_magic.compilers.base import CompileOptions, Compiler
from optiml_magic.devices.base import Device, Execution, Fault, Job
from optiml_magic.diagnosis import Diagnosis
from optiml_magic.errors import KernelFailed
from optiml_magic.findings import Tool
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.facts import Facts
from optiml_magic.model.hit_rates import NO_EXPERIENCE, HitRates
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.roofline import Roofs
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.preparation import Preparation, Prepared
from optiml_magic.problem import Instance, Problem
from optiml_magic.profilers.base import Profiler
from optiml_magic.profilers.events import EventsProfiler
from optiml_magic.profilers.levels import Levels
from optiml_magic.source.program import parse_program
from optiml_magic.verifiers import oracle
from optiml_magic.verifiers.exact import Exactness
from optiml_magic.verifiers.hazards import Inspection, Inspector, inspected
from optiml_magic.verifiers.scrutiny import Scrutiny
from optiml_magic.verifiers.verify import fresh_poison, judge, verify

_AFTER = "a randomly chosen buffer set, after timing"

# Which candidates are inspected for hazards: all that run, those that would be the best so far,
# those that are left at the end, or only an input kernel that is to be its own oracle.
Extent = Literal["all", "winners", "finalists", "oracle"]


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
    trial_seconds: float = math.inf  # for each of the things that ``Trials`` lists


class Evaluator:
    """Evaluates the candidates of one problem. The first one must be the input kernel."""

    def __init__(
        self,
        problem: Problem,
        tools: Tools,
        *,
        thorough: bool = False,
        hit_rates: HitRates = NO_EXPERIENCE,
        exact: bool = False,
    ) -> None:
        self._problem = problem
        self._thorough = thorough  # every candidate as if it would win
        self._tools = tools
        self._instances = problem.instances
        self._diagnosis = Diagnosis(problem, tools.chip, tools.findings, tools.roofs, hit_rates)
        self._exactness = Exactness(tools.device, tools.instructions) if exact else None
        self._seen: dict[str, Evaluation] = {}
        self._witness = tools.inspector if thorough else None  # of who wrote what is wrong
        self._scrutiny = Scrutiny(
            problem,
            tools.device,
            tools.chip,
            tools.instructions,
            self._witness,
            tools.trial_seconds,
        )
        self._preparation = Preparation(
            problem, tools.compiler, tools.options, tools.chip, self._scrutiny.trials
        )
        self._fresh: dict[int, tuple[Build, Job]] = {}  # of this batch, to be counted
        self._best = float("inf")  # seconds of the fastest that may win
        self._best_general = float("inf")  # of those that take all sizes of the input kernel
        self._inspections: dict[str, Inspection] = {}  # by identity
        self._promised: dict[str, None] = {}  # metrics that edits are to move
        self._notes: dict[str, None] = {}  # each once, in order
        for instance in self._instances:
            tools.device.put(instance.case)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is to be told of the run as a whole."""
        return (*self._notes, *self._tools.profiler.notes)

    def __call__(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        """Verify and time each, count what passed in one go, then say what it all means."""
        self._fresh.clear()
        for candidate in candidates:
            self._expect(candidate)
        evaluations = self._counted([self._timed(candidate) for candidate in candidates])
        return [self._understood(c, e) for c, e in zip(candidates, evaluations, strict=True)]

    def settle(self, candidates: Sequence[Candidate]) -> dict[int, Measurement | Verdict]:
        """The finalists timed once more against the input kernel, all in turn; by number.

        One that was never the fastest is scrutinised now, and where nobody looked for hazards yet
        somebody does; a verdict stands in the place of one that fails. Empty on a device whose
        times are estimated; the earlier measurements where a finalist faults this time.
        """
        profiler = self._tools.profiler
        if not isinstance(profiler, EventsProfiler):
            return {}
        settled: dict[int, Measurement | Verdict] = {}
        passed: dict[int, Prepared] = {}
        for candidate in candidates:
            prepared = self._prepare(candidate.text)
            if isinstance(prepared, Verdict):
                settled[candidate.number] = prepared
                continue
            first = prepared.verified[0][0]
            verdict = self._scrutiny.correctness(prepared.program, prepared.identity, first)
            if verdict.passed:
                passed[candidate.number] = prepared
            else:
                settled[candidate.number] = verdict
        if self._tools.extent == "finalists":
            settled |= self._hazardous(passed)
        runs = {n: (p.build, self._job(p)) for n, p in passed.items() if n not in settled}
        timed = profiler.settle(list(runs.values()))
        if isinstance(timed, Fault):
            self._note("the finalists could not be timed once more")
            seen = {number: self._seen[passed[number].identity].measurement for number in runs}
            return settled | {number: before for number, before in seen.items() if before}
        for number, found in zip([0, *runs], timed, strict=True):
            settled[number] = self._settled(number, found)
        return settled

    def _hazardous(self, finalists: Mapping[int, Prepared]) -> dict[int, Measurement | Verdict]:
        """The verdicts of those with a hazard; they are inspected together, since that is slow."""
        inspector = self._tools.inspector
        if inspector is None or not finalists:
            return {}
        jobs = [(prepared.build, self._inspected_job(prepared)) for prepared in finalists.values()]
        inspections = inspector.inspect(jobs)
        reasons = {i.unchecked for i in inspections if i.unchecked}
        self._note(
            f"hazards of the finalists: not all were looked for; {'; '.join(sorted(reasons))}"
            if reasons
            else f"hazards of the finalists: {inspector.name} looked for them"
        )
        verdicts = {
            number: inspected(Verdict(Outcome.PASSED, ""), inspection)
            for number, inspection in zip(finalists, inspections, strict=True)
        }
        return {number: verdict for number, verdict in verdicts.items() if not verdict.passed}

    def _settled(self, number: int, found: Measurement | Execution) -> Measurement | Verdict:
        if isinstance(found, Execution):
            return judge(found, _AFTER)
        return (self._scrutiny.impossible(found) if number else None) or found

    def facts(self, candidate: Candidate) -> Facts | None:
        """What is known of a candidate once it is bound; None where it cannot be. Found once."""
        number = candidate.number
        if number not in self._diagnosis.facts:
            prepared = self._prepare(candidate.text)
            self._diagnosis.facts[number] = None
            if isinstance(prepared, Prepared):
                program = parse_program(candidate.text)
                self._diagnosis.find(number, program, prepared.plans[0][1])
        return self._diagnosis.facts[number]

    def remember(self, candidate: Candidate, evaluation: Evaluation) -> None:
        """Take in an evaluation made earlier, in a run that is resumed."""
        root = evaluation.measurement
        self._expect(candidate)
        self._diagnosis.remember(candidate, evaluation)
        if candidate.number == 0:
            if root is None:
                return
            refused = self._answer_from_kernel(candidate)
            if refused is not None:
                raise KernelFailed(f"the input kernel passed before, and now: {refused.summary}")
            prepared, profiler = self._prepare(candidate.text), self._tools.profiler
            if isinstance(prepared, Prepared):
                self._learn(evaluation, candidate, prepared)
            if isinstance(profiler, EventsProfiler) and isinstance(prepared, Prepared):
                profiler.remember(prepared.build, self._job(prepared), root.seconds)
        self._may_win(evaluation)
        if evaluation.identity:
            self._seen.setdefault(evaluation.identity, evaluation)

    def _understood(self, candidate: Candidate, evaluation: Evaluation) -> Evaluation:
        """Diagnosed; a duplicate has all evidence of the earlier one, of this batch or not."""
        if evaluation.duplicate_of is None:
            diagnosed = self._diagnosis(candidate, evaluation, self._fresh.get(candidate.number))
            if evaluation.identity:
                self._seen[evaluation.identity] = diagnosed
            return diagnosed
        repeated = replace(
            self._seen[evaluation.identity],
            candidate=evaluation.candidate,
            duplicate_of=evaluation.duplicate_of,
            seconds_spent=evaluation.seconds_spent,
        )
        return self._diagnosis(candidate, repeated)

    def _expect(self, candidate: Candidate) -> None:
        """A promise can be tested only where its metric is counted, of later ones too."""
        if candidate.proposal.hypothesis is not None:
            self._promised[candidate.proposal.hypothesis.metric] = None

    def _note(self, text: str) -> None:
        self._notes[text] = None

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
            prepared.verified,
            instructions=self._tools.instructions,
            notes=(*self._problem.notes, *prepared.notes),
            inspector=self._witness,
            difference=self._exactness.difference if self._exactness else lambda _: "",
        )
        evaluation = Evaluation(number, prepared.identity, verdict, only_where=prepared.only_where)
        if verdict.passed:
            evaluation = self._measured(evaluation, prepared)
        evaluation = self._inspected(self._challenged(evaluation, prepared), prepared)
        measured = evaluation.measurement
        self._may_win(evaluation)
        if measured is not None and evaluation.verdict.passed and number == 0:
            evaluation = self._learn(evaluation, candidate, prepared)
        self._seen[evaluation.identity] = evaluation  # its diagnosis follows with the batch
        return evaluation

    def _bar(self, evaluation: Evaluation) -> float:
        """The seconds that are to be beaten: one that takes all sizes may win over a faster one."""
        return self._best if evaluation.only_where else self._best_general

    def _may_win(self, evaluation: Evaluation) -> None:
        measured = evaluation.measurement
        if measured is None or not evaluation.verdict.passed:
            return
        self._best = min(self._best, measured.seconds)
        if not evaluation.only_where:
            self._best_general = min(self._best_general, measured.seconds)

    def _prepare(self, text: str) -> Prepared | Verdict:
        return self._preparation(text, self._instances)

    def _measured(self, evaluation: Evaluation, prepared: Prepared) -> Evaluation:
        """Measure the first case."""
        job, profiler = self._job(prepared), self._tools.profiler
        if evaluation.candidate == 0:
            profiler.begin()
        measured = profiler.measure(prepared.build, job, self._bar(evaluation))
        if isinstance(measured, Fault):
            return replace(evaluation, verdict=judge(Execution(measured)))
        if isinstance(measured, Execution):
            return replace(evaluation, verdict=judge(measured, _AFTER))
        self._fresh[evaluation.candidate] = (prepared.build, job)
        resources = tuple(prepared.build.resources[x.kernel] for x in job.plan.launches)
        return replace(evaluation, measurement=measured, resources=resources)

    def _learn(self, root: Evaluation, candidate: Candidate, prepared: Prepared) -> Evaluation:
        """Try other inputs on the input kernel; its identity covers those that it gets right."""
        assert root.measurement is not None
        told = self._scrutiny.learn(prepared.program, root.measurement)
        for note in told:
            self._note(note)
        again = self._prepare(candidate.text)
        assert isinstance(again, Prepared)
        if self._exactness:
            self._exactness.learn(again.program, again.verified)
        notes = (*root.verdict.notes, told[0], *again.notes)
        return replace(root, identity=again.identity, verdict=replace(root.verdict, notes=notes))

    def _challenged(self, evaluation: Evaluation, prepared: Prepared) -> Evaluation:
        """Every further check, where the candidate would be the best so far: no other can win."""
        measured = evaluation.measurement
        wins = measured is not None and measured.seconds <= self._bar(evaluation)
        if measured is None or evaluation.candidate == 0 or not (wins or self._thorough):
            return evaluation
        first = prepared.verified[0][0]
        found = self._scrutiny.verdict(prepared.program, prepared.identity, first, measured)
        if not found.passed:
            self._fresh.pop(evaluation.candidate, None)
            return Evaluation(evaluation.candidate, evaluation.identity, found)
        notes = (*evaluation.verdict.notes, *found.notes)
        return replace(evaluation, verdict=replace(evaluation.verdict, notes=notes))

    def _inspected(self, evaluation: Evaluation, prepared: Prepared) -> Evaluation:
        """Look for hazards on the first case, where the candidate would be the best so far.

        Nothing slower can win, and looking costs more than running. Asked to look at all, also at
        a wrong one: a race says why.
        """
        tools, verdict = self._tools, evaluation.verdict
        seconds = evaluation.measurement.seconds if evaluation.measurement else float("inf")
        best = self._thorough or seconds <= self._bar(evaluation)
        wins = tools.extent == "winners" and verdict.passed and best
        ran = tools.extent == "all" and (verdict.passed or verdict.outcome is Outcome.WRONG)
        if not (wins or ran):
            return evaluation
        verdict = inspected(verdict, self._inspection(prepared))
        if verdict.passed:
            return replace(evaluation, verdict=verdict)
        return Evaluation(evaluation.candidate, evaluation.identity, verdict)

    def _inspection(self, prepared: Prepared) -> Inspection:
        inspector = self._tools.inspector
        if inspector is None:
            return Inspection(())
        found = self._inspections.get(prepared.identity)
        if found is None:
            (found,) = inspector.inspect([(prepared.build, self._inspected_job(prepared))])
            self._inspections[prepared.identity] = found
        return found

    def _inspected_job(self, prepared: Prepared) -> Job:
        """The first that is verified: of a large task a small one."""
        return self._job(replace(prepared, plans=prepared.verified))

    def _job(self, prepared: Prepared) -> Job:
        instance, plan = prepared.plans[0]
        return Job(instance.case.key, plan, fresh_poison(), False, self._tools.instructions)

    def _counted(self, evaluations: list[Evaluation]) -> list[Evaluation]:
        """The counters of the whole batch, where a tool gives them; said once where it refuses."""
        levels = self._tools.levels
        completed = levels.completed(evaluations, self._fresh, also=tuple(self._promised))
        for note in levels.notes:
            self._note(note)
        return completed

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
            prepared.verified,
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
