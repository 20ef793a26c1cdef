"""The referee: serial, in the parent; it knows the best so far, the duplicates and the notes.

The order of the stages stands in ``_evaluated``: prepare, verify, measure, scrutinise, inspect, up
to the first failure; counters and diagnosis follow for the whole batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.compilers.pool import Request
from optiml_magic.devices.base import Execution, Fault, Job
from optiml_magic.diagnosis import Diagnosis
from optiml_magic.errors import KernelFailed
from optiml_magic.evaluation import stages
from optiml_magic.evaluation.asking import Asking
from optiml_magic.evaluation.beside import beside
from optiml_magic.evaluation.elsewhere import elsewhere
from optiml_magic.evaluation.finalists import hazards, scrutinised
from optiml_magic.evaluation.limit import Limit
from optiml_magic.evaluation.stages import AFTER, Context
from optiml_magic.evaluation.tools import Tools
from optiml_magic.model.build import Build
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.facts import Facts
from optiml_magic.model.hit_rates import NO_EXPERIENCE, HitRates
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.objective import Objective
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.preparation import Prepared
from optiml_magic.problem import Problem
from optiml_magic.source.program import parse_program
from optiml_magic.verifiers.hazards import Inspection, inspected
from optiml_magic.verifiers.verify import judge


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
        objective: Objective = "speed",
        limit: Limit | None = None,
    ) -> None:
        self._thorough = thorough  # every candidate as if it would win
        self._diagnosis = Diagnosis(
            problem, tools.chip, tools.findings, tools.roofs, hit_rates, objective
        )
        self._context = Context.of(problem, tools, exact=exact, thorough=thorough)
        self._limit = limit or Limit(tools.timings)
        self._seen: dict[str, Evaluation] = {}
        self._measured_as: dict[int, Measurement] = {}  # those that passed, by candidate
        self._runs: dict[int, tuple[Build, Job]] = {}  # what was measured, until it is understood
        self._best = float("inf")  # seconds of the fastest that may win
        self._best_general = float("inf")  # of those that take all sizes of the input kernel
        self._inspections: dict[str, Inspection] = {}  # by identity
        self._asking = Asking(tools.levels, whole=thorough)
        self._notes: dict[str, None] = {}  # each once, in order

    @property
    def _tools(self) -> Tools:
        return self._context.tools

    @property
    def notes(self) -> tuple[str, ...]:
        """What there is to say about the run as a whole."""
        return (*self._notes, *self._tools.profiler.notes)

    def __call__(self, candidates: Sequence[Candidate]) -> list[Evaluation]:
        """Verify and time each, count what passed in one go, then say what it all means."""
        return self.begin(candidates)()

    def begin(
        self, candidates: Sequence[Candidate], goes_on: Callable[[], bool] = lambda: True
    ) -> Callable[[], list[Evaluation]]:
        """Do what needs the device; the result has the evaluations.

        ``goes_on`` is asked before each but the first; where it says no, the others are left out.
        Others may begin before it is asked for; what was begun first is to be asked for first.
        """
        for candidate in candidates:
            self._asking.expect(candidate)
        first = any(candidate.number == 0 for candidate in candidates)
        self._warm()
        evaluations: list[Evaluation] = []
        for candidate in candidates:
            if evaluations and not goes_on():
                break
            evaluations.append(self._timed(candidate))
        candidates = candidates[: len(evaluations)]
        counted = self._counted(candidates, evaluations)

        def understood() -> list[Evaluation]:
            if 0 in self._runs:  # they may have to be measured: while ncu writes what it counted
                with self._tools.timings.stage("measure"):
                    self._tools.roofs()
            with self._tools.timings.stage("count"):
                found = beside(counted, self._ahead) if first else counted()
            self._notes |= dict.fromkeys(self._tools.levels.notes)
            with self._tools.timings.stage("measure"):
                return [self._understood(c, e) for c, e in zip(candidates, found, strict=True)]

        return understood

    def request(self, candidate: Candidate) -> Request | None:
        """What the compiler will be asked for it; None where it does not get so far."""
        return self._context.preparation.request(candidate.text)

    def settle(self, candidates: Sequence[Candidate]) -> dict[int, Measurement | Verdict]:
        """The finalists timed once more against the input kernel, all in turn; by number.

        One that was never the fastest is scrutinised now, and where nobody looked for hazards yet
        somebody does; a verdict takes the place of one that fails. Empty on a device whose
        times are estimated; the earlier measurements where a finalist faults this time.
        """
        if not self._tools.profiler.settles:
            return {}
        with self._tools.timings.stage("settle"):
            return self._settled(candidates)

    def elsewhere(self, root: Candidate, winner: Candidate) -> Verdict | None:
        """Note what the winner gains at half the sizes; the verdict where it is wrong there.

        The last that is asked: the profiler's baseline is another afterwards.
        """
        if not self._limit.affords_another_size:
            self._note("the winner was not timed at another size: the time was used up")
            return None
        with self._tools.timings.stage("settle"):
            programs = [stages.prepare(one.text, self._context) for one in (root, winner)]
            before, after = programs
            if isinstance(before, Verdict) or isinstance(after, Verdict):
                return None
            self._notes |= dict.fromkeys(self._tools.profiler.notes)
            found = elsewhere(before, after, self._context)
            self._tools.profiler.begin()
        if isinstance(found, Verdict):
            return found
        if found:
            self._note(found)
        return None

    def facts(self, candidate: Candidate) -> Facts | None:
        """What is known of a candidate once it is bound; None where it cannot be. Found once."""
        number = candidate.number
        if number not in self._diagnosis.facts:
            prepared = stages.prepare(candidate.text, self._context)
            self._diagnosis.facts[number] = None
            if isinstance(prepared, Prepared):
                program = parse_program(candidate.text)
                self._diagnosis.find(number, program, prepared.plans[0][1])
        return self._diagnosis.facts[number]

    def remember(self, candidate: Candidate, evaluation: Evaluation) -> None:
        """Take in an evaluation made earlier, in a run that is resumed."""
        root = evaluation.measurement
        self._asking.expect(candidate)
        self._asking.remember(evaluation)
        self._diagnosis.remember(candidate, evaluation)
        if candidate.number == 0:
            if root is None:
                return
            refused = self._answer_from_kernel(candidate)
            if refused is not None:
                raise KernelFailed(f"the input kernel passed before, and now: {refused.summary}")
            prepared = stages.prepare(candidate.text, self._context)
            if isinstance(prepared, Prepared):
                self._learn(evaluation, candidate, prepared)
                job = self._context.job(prepared)
                self._tools.profiler.remember(prepared.build, job, root.seconds)
        self._may_win(evaluation)
        if evaluation.identity:
            self._seen.setdefault(evaluation.identity, evaluation)

    def _timed(self, candidate: Candidate) -> Evaluation:
        began = time.monotonic()
        evaluation = self._evaluated(candidate)
        return replace(evaluation, seconds_spent=time.monotonic() - began)

    def _evaluated(self, candidate: Candidate) -> Evaluation:
        number, first = candidate.number, candidate.number == 0
        prepared = stages.prepare(candidate.text, self._context)
        if isinstance(prepared, Verdict):
            return Evaluation(number, "", prepared)
        earlier = self._seen.get(prepared.identity)
        if earlier is not None:
            return replace(earlier, candidate=number, duplicate_of=earlier.candidate)
        if first:
            refused = self._answer_from_kernel(candidate)
            if refused is not None:
                return Evaluation(number, prepared.identity, refused)
            prepared = stages.with_answers(prepared, self._context)
        verdict = stages.verify(prepared, self._context)
        evaluation = Evaluation(number, prepared.identity, verdict, only_where=prepared.only_where)
        if verdict.passed:
            evaluation = self._measured(evaluation, prepared)
        evaluation = self._inspected(self._challenged(evaluation, prepared), prepared)
        self._may_win(evaluation)
        if first and evaluation.measurement is not None and evaluation.verdict.passed:
            evaluation = self._learn(evaluation, candidate, prepared)
        self._seen[evaluation.identity] = evaluation  # its diagnosis follows with the batch
        return evaluation

    def _measured(self, evaluation: Evaluation, prepared: Prepared) -> Evaluation:
        number, bar, began = evaluation.candidate, self._bar(evaluation), self._limit.elapsed
        found = stages.measure(prepared, self._context, bar, first=number == 0)
        if number == 0:
            self._limit.measured(self._limit.elapsed - began)
        if isinstance(found, Verdict):
            return replace(evaluation, verdict=found)
        self._runs[number] = (prepared.build, found.job)
        return replace(evaluation, measurement=found.measurement, resources=found.resources)

    def _challenged(self, evaluation: Evaluation, prepared: Prepared) -> Evaluation:
        """Every further check, where the candidate would be the best so far: no other can win."""
        measured = evaluation.measurement
        wins = measured is not None and measured.seconds <= self._bar(evaluation)
        if measured is None or evaluation.candidate == 0 or not (wins or self._thorough):
            return evaluation
        found = stages.scrutinise(prepared, self._context, measured)
        if not found.passed:
            self._runs.pop(evaluation.candidate, None)
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
        self._runs.pop(evaluation.candidate, None)
        return Evaluation(evaluation.candidate, evaluation.identity, verdict)

    def _inspection(self, prepared: Prepared) -> Inspection:
        found = self._inspections.get(prepared.identity)
        if found is None:
            (found,) = stages.inspect([prepared], self._context)
            self._inspections[prepared.identity] = found
        return found

    def _answer_from_kernel(self, candidate: Candidate) -> Verdict | None:
        """Without a reference the input kernel's own outputs become the wanted ones."""
        if self._context.problem.task.reference is not None:
            return None
        prepared = stages.prepare(candidate.text, self._context)
        if isinstance(prepared, Verdict):
            return prepared
        began = self._limit.elapsed
        verdict = inspected(stages.passed(), self._inspection(prepared))
        self._limit.asked_of_input(self._limit.elapsed - began)
        if not verdict.passed:
            return verdict
        answered = stages.answered(prepared, self._context)
        if isinstance(answered, Verdict):
            return answered
        self._context = answered
        return None

    def _learn(self, root: Evaluation, candidate: Candidate, prepared: Prepared) -> Evaluation:
        """Try other inputs on the input kernel; its identity covers those that it gets right."""
        assert root.measurement is not None
        told = stages.learn(prepared, self._context, root.measurement)
        self._notes |= dict.fromkeys(told)
        again = stages.prepare(candidate.text, self._context)
        assert isinstance(again, Prepared)
        if self._context.exactness:
            self._context.exactness.learn(again.program, again.verified)
        notes = (*root.verdict.notes, told[0], *again.notes)
        return replace(root, identity=again.identity, verdict=replace(root.verdict, notes=notes))

    def _counted(
        self, candidates: Sequence[Candidate], evaluations: list[Evaluation]
    ) -> Callable[[], list[Evaluation]]:
        """The counters of those that somebody may build on, or whose promise is to be tested."""
        pairs = zip(candidates, evaluations, strict=True)
        asked = self._asking.of(pairs, self._runs.keys(), self._best)
        if 0 in self._runs.keys() - asked:
            self._note("too slow for ncu: the input kernel; the first faster program is profiled")
        if asked and 0 not in asked and not self._limit.affords_counters:
            asked = set()
            self._note("ncu did not profile the last candidates: the time was nearly used up")
        closely, began = bool(asked) and not self._asking.looked, self._limit.elapsed
        begin = partial(
            self._tools.levels.begin,
            evaluations,
            self._runs,
            counted=asked,
            closely=closely,
            also=self._asking.promised,
        )
        self._asking.looked |= closely
        with self._tools.timings.stage("count"):
            counted = beside(begin, self._ahead) if 0 in asked else begin()
        if not self._thorough:  # then others will follow
            self._warm()

        def completed() -> list[Evaluation]:
            found = counted()
            if asked:
                self._limit.counted(self._limit.elapsed - began)
            return found

        return completed

    def _warm(self) -> None:
        closely = not self._asking.looked
        self._tools.levels.warm(closely=closely, also=self._asking.promised)

    def _ahead(self) -> bool:
        """One more set of inputs is drawn that winners will meet, if any."""
        return not self._thorough and self._context.scrutiny.trials.ahead()

    def _understood(self, candidate: Candidate, evaluation: Evaluation) -> Evaluation:
        """Diagnosed; a duplicate has all evidence of the earlier one, of this batch or not."""
        if evaluation.duplicate_of is None:
            run = self._runs.pop(candidate.number, None)
            diagnosed = self._diagnosis(candidate, evaluation, run)
            if evaluation.identity:
                self._seen[evaluation.identity] = diagnosed
            if candidate.number in self._measured_as and diagnosed.measurement is not None:
                self._measured_as[candidate.number] = diagnosed.measurement
            return diagnosed
        repeated = replace(
            self._seen[evaluation.identity],
            candidate=evaluation.candidate,
            duplicate_of=evaluation.duplicate_of,
            seconds_spent=evaluation.seconds_spent,
        )
        return self._diagnosis(candidate, repeated)

    def _settled(self, candidates: Sequence[Candidate]) -> dict[int, Measurement | Verdict]:
        if self._tools.extent == "finalists" and self._tools.inspector is not None:
            self._tools.inspector.warm()
        passed, verdicts, left_out = scrutinised(candidates, self._context, self._limit)
        settled: dict[int, Measurement | Verdict] = dict(verdicts)
        if left_out:
            self._note(f"finalists left out, since the time was used up: {left_out}")
        if self._tools.extent == "finalists":
            known = [self._measured_as[n].seconds for n in passed if n in self._measured_as]
            slowest = max(known, default=0.0)
            hazardous, notes = hazards(passed, self._context, slowest)
            settled |= hazardous
            self._notes |= dict.fromkeys(notes)
        left = {n: p for n, p in passed.items() if n not in settled}
        runs = [(p.build, self._context.job(p)) for p in left.values()]
        timed = self._tools.profiler.settle(runs)
        if isinstance(timed, Fault):
            self._note("the finalists could not be timed again")
            seen = self._measured_as
            return settled | {number: seen[number] for number in left if number in seen}
        for number, found in zip([0, *left], timed, strict=True):
            settled[number] = self._last(number, found)
        return settled

    def _last(self, number: int, found: Measurement | Execution) -> Measurement | Verdict:
        if isinstance(found, Execution):
            return judge(found, AFTER)
        return (self._context.scrutiny.impossible(found) if number else None) or found

    def _bar(self, evaluation: Evaluation) -> float:
        """The seconds that are to be beaten: one that takes all sizes may win over a faster one."""
        return self._best if evaluation.only_where else self._best_general

    def _may_win(self, evaluation: Evaluation) -> None:
        measured = evaluation.measurement
        if measured is None or not evaluation.verdict.passed:
            return
        self._measured_as[evaluation.candidate] = measured
        if measured.seconds < self._best and evaluation.candidate in self._runs:
            self._tools.profiler.follow(*self._runs[evaluation.candidate], measured)
        self._best = min(self._best, measured.seconds)
        if not evaluation.only_where:
            self._best_general = min(self._best_general, measured.seconds)

    def _note(self, text: str) -> None:
        self._notes[text] = None
