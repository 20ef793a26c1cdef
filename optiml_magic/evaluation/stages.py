"""The stages of one candidate: prepare, verify, measure, inspect.

Each is a function of a program and a context; none knows of other candidates. What the input kernel
taught (its answers where there is no reference, the inputs that it gets right) is in the context.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from optiml_magic.devices.base import Execution, Fault, Job
from optiml_magic.evaluation.tools import Tools
from optiml_magic.model.build import Build, Resources
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.preparation import Preparation, Prepared
from optiml_magic.problem import Instance, Problem
from optiml_magic.verifiers import oracle
from optiml_magic.verifiers.exact import Exactness
from optiml_magic.verifiers.hazards import Inspection, Inspector
from optiml_magic.verifiers.scrutiny import Scrutiny
from optiml_magic.verifiers.verify import fresh_poison, judge
from optiml_magic.verifiers.verify import verify as compared

_SLOWED = 1e5  # by racecheck, beside whose start all else is small; measured on an H200, ours
AFTER = "a randomly chosen buffer set, after timing"


@dataclass(frozen=True)
class Context:
    """What every candidate of one search meets. ``witness`` tells who wrote what is wrong."""

    problem: Problem
    tools: Tools
    instances: tuple[Instance, ...]
    preparation: Preparation
    scrutiny: Scrutiny
    exactness: Exactness | None = None
    witness: Inspector | None = None

    @classmethod
    def of(cls, problem: Problem, tools: Tools, *, exact: bool, thorough: bool) -> Context:
        """Before anything was evaluated; the inputs are put on the device."""
        witness = tools.inspector if thorough else None
        scrutiny = Scrutiny(
            problem, tools.device, tools.chip, tools.instructions, witness, tools.trial_seconds
        )
        preparation = Preparation(
            problem, tools.compiler, tools.options, tools.chip, scrutiny.trials, tools.timings
        )
        for instance in problem.instances:
            tools.device.put(instance.case)
        exactness = Exactness(tools.device, tools.instructions) if exact else None
        return cls(problem, tools, problem.instances, preparation, scrutiny, exactness, witness)

    def job(self, prepared: Prepared) -> Job:
        """The run that is timed."""
        instance, plan = prepared.plans[0]
        return Job(instance.case.key, plan, fresh_poison(), False, self.tools.instructions)

    def inspected(self, prepared: Prepared, seconds: float = 0.0) -> tuple[Instance, LaunchPlan]:
        """The inputs that hazards are looked for on: the first that are verified.

        Of a kernel that takes so long that a tool which slows it down would outrun its time, the
        largest of the small ones. ``seconds`` is what one run was measured to take.
        """
        first, *others = prepared.verified
        if seconds * _SLOWED <= self.tools.inspect_seconds:
            return first
        smaller = [one for one in others if 8 * _elements(one[0]) <= _elements(first[0])]
        return max(smaller, key=lambda one: _elements(one[0]), default=first)


@dataclass(frozen=True)
class Measured:
    """What a program that passed was measured as."""

    measurement: Measurement
    resources: tuple[Resources, ...]
    job: Job


def prepare(text: str, context: Context) -> Prepared | Verdict:
    """Parsed, compiled and bound to every set of inputs."""
    with context.tools.timings.stage("prepare"):
        return context.preparation(text, context.instances)


def verify(prepared: Prepared, context: Context) -> Verdict:
    """Its outputs against the wanted ones, on every set of inputs."""
    exactness = context.exactness
    with context.tools.timings.stage("verify"):
        return compared(
            context.tools.device,
            prepared.build,
            prepared.verified,
            instructions=context.tools.instructions,
            notes=(*context.problem.notes, *prepared.notes),
            inspector=context.witness,
            difference=exactness.difference if exactness else lambda _: "",
        )


def measure(prepared: Prepared, context: Context, bar: float, *, first: bool) -> Measured | Verdict:
    """The first case timed or counted. ``bar``: the seconds to beat; ``first``: the input kernel.

    A verdict where it did not end this time, or left something wrong behind.
    """
    job, profiler = context.job(prepared), context.tools.profiler
    with context.tools.timings.stage("measure"):
        if first:
            profiler.begin()
        measured = profiler.measure(prepared.build, job, bar)
    if isinstance(measured, Fault):
        return judge(Execution(measured))
    if isinstance(measured, Execution):
        return judge(measured, AFTER)
    resources = tuple(prepared.build.resources[x.kernel] for x in job.plan.launches)
    return Measured(measured, resources, job)


def scrutinise(prepared: Prepared, context: Context, measurement: Measurement) -> Verdict:
    """What a candidate has to stand that would be the fastest so far; its notes are facts."""
    first = prepared.verified[0][0]
    with context.tools.timings.stage("verify"):
        return context.scrutiny.verdict(prepared.program, prepared.identity, first, measurement)


def inspect(
    prepared: Sequence[Prepared], context: Context, seconds: float = 0.0
) -> list[Inspection]:
    """The hazards of each, together, since that is slow; none where nobody can look."""
    return _inspections(
        [(one.build, *context.inspected(one, seconds)) for one in prepared], context
    )


def inspect_root(instance: Instance, context: Context) -> Inspection:
    """The hazards of the input kernel on inputs that it and candidates are verified on."""
    root = prepare(context.problem.program.text, context)
    assert isinstance(root, Prepared)  # it was verified before any candidate
    plan = next(p for i, p in root.verified if i.case.key == instance.case.key)
    (found,) = _inspections([(root.build, instance, plan)], context)
    return found


def _inspections(
    runs: Sequence[tuple[Build, Instance, LaunchPlan]], context: Context
) -> list[Inspection]:
    inspector, tools = context.tools.inspector, context.tools
    if inspector is None:
        return [Inspection(()) for _ in runs]
    jobs = []
    for build, instance, plan in runs:
        inspector.put(instance.case)
        job = Job(instance.case.key, plan, fresh_poison(), False, tools.instructions)
        jobs.append((build, job))
    with tools.timings.stage("inspect"):
        return inspector.inspect(jobs)


def answered(prepared: Prepared, context: Context) -> Context | Verdict:
    """The context with the input kernel's own outputs as the wanted ones."""
    tools, task = context.tools, context.problem.task
    with tools.timings.stage("verify"):
        found = oracle.answered(
            tools.device,
            prepared.build,
            prepared.verified,
            instructions=tools.instructions,
            rtol=task.rtol,
            atol=task.atol,
        )
        if isinstance(found, Verdict):
            return found
        for instance in found:
            tools.device.put(instance.case)
    others = (i for i in context.instances if not i.verified)
    return replace(context, instances=(*others, *found))


def learn(prepared: Prepared, context: Context, measurement: Measurement) -> tuple[str, ...]:
    """Other inputs tried on the input kernel: candidates are held to those that it gets right."""
    with context.tools.timings.stage("verify"):
        return context.scrutiny.learn(prepared.program, measurement)


def with_answers(prepared: Prepared, context: Context) -> Prepared:
    """The same plans, on the context's instances."""
    pairs: list[tuple[Instance, LaunchPlan]] = [
        (instance, plan)
        for instance, (_, plan) in zip(context.instances, prepared.plans, strict=False)
    ]
    return replace(prepared, plans=tuple(pairs))


def passed() -> Verdict:
    """Nothing to complain of so far."""
    return Verdict(Outcome.PASSED, "")


def _elements(instance: Instance) -> int:
    return sum(buffer.array.size for buffer in instance.case.buffers)
