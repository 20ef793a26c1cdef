"""What became of each line of a kernel: compile it, run it once with counters on, join the two.

A kernel that cannot be bound to inputs, or that does not end, is still compiled and shown; the
facts say why nothing was counted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from optiml_magic.compilers.sass import RememberedCode
from optiml_magic.devices.base import Execution, Fault, Job
from optiml_magic.diagnosis import Diagnosis
from optiml_magic.errors import KernelFailed, UsageError
from optiml_magic.kernels.hostcode import drop_host_code
from optiml_magic.kernels.signature import kernels
from optiml_magic.kernels.unit import lift_program
from optiml_magic.model.build import Build, CompileFailure
from optiml_magic.model.candidate import Candidate, Proposal
from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.finding import Finding
from optiml_magic.model.hit_rates import HitRates
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.task import Task
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.optimize import prepared
from optiml_magic.preparation import Bound, compiled
from optiml_magic.problem import Problem
from optiml_magic.profilers.levels import Measured
from optiml_magic.reports.annotation import Annotation, annotated
from optiml_magic.reports.quantities import number_of, seconds
from optiml_magic.reports.text import describe
from optiml_magic.session import Session, session
from optiml_magic.settings import Settings
from optiml_magic.source.program import parse_program
from optiml_magic.verifiers.branches import unreached
from optiml_magic.verifiers.verify import judge, verify

Facts = list[tuple[str, str]]
_NO_COUNTS = "nothing was counted"


def annotate(task: Task, settings: Settings) -> Annotation:
    """The task's kernel, line by line; static where it cannot be run, and the facts say why.

    Raises KernelFailed for a text that does not compile.
    """
    try:
        problem = prepared(task, replace(settings, verify_seeds=1))
    except KernelFailed:
        raise
    except UsageError as unfit:
        return _static(task, settings, unfit)
    cases = [instance.case for instance in problem.instances]
    with session(settings, task=task, counted=True, machine=True) as members:
        members.begin(problem)
        for case in cases:  # the device's host starts while the compiler's does
            members.tools.device.put(case)
        tools = members.tools
        bound = compiled(
            problem.program, problem.interface, tools.compiler, tools.options, tools.chip
        )
        if isinstance(bound, UsageError):
            raise bound
        if isinstance(bound, CompileFailure):
            raise _failed(bound)
        ran = _run(problem, members, bound)
        ran.facts.extend(("note", note) for note in problem.notes)
        return _joined(problem.name, task.text, settings, members, bound.build, ran)


def _static(task: Task, settings: Settings, unfit: UsageError) -> Annotation:
    """Compiled alone; ``unfit`` says why it cannot be run."""
    program = parse_program(drop_host_code(task.text, task.constants, task.lacks)[0])
    known = kernels(lift_program(program, task.defines))
    if not known:
        raise unfit
    launched = {launch.kernel or known[0].name for launch in program.launches}
    facts = [("counts", f"{_NO_COUNTS}, since nothing can be run: {unfit}")]
    bare = {name.split("<")[0] for name in launched}
    facts += [
        ("note", f"{kernel.name} is a template that no launch instantiates")
        for kernel in known
        if kernel.template_parameters and kernel.name not in bare
    ]
    with session(settings, task=task) as members:
        tools, names = members.tools, tuple(sorted(launched))
        build = tools.compiler.compile(program.compiled_text(), names, tools.chip, tools.options)
        if isinstance(build, CompileFailure):
            raise _failed(build)
        return _joined(task.name or known[0].name, task.text, settings, members, build, _Ran(facts))


def _failed(failure: CompileFailure) -> KernelFailed:
    first = failure.errors[0]
    return KernelFailed(
        f"the kernel failed, compile_error: {first.message}",
        fix="fix this line",
        line=first.line,
    )


@dataclass(frozen=True)
class _Ran:
    """What a run gave; no measurement where nothing ran to its end, and the facts say why."""

    facts: Facts
    measured: Measurement | None = None
    findings: tuple[Finding, ...] = ()


def _run(problem: Problem, members: Session, bound: Bound) -> _Ran:
    """Compared with the reference, where there is one, on the task's own inputs; then counted."""
    tools, facts, verdict = members.tools, Facts(), Verdict(Outcome.PASSED, "")
    build = bound.build
    try:
        plans = [(i, bound.plan(i.values, i.shapes)) for i in problem.instances]
    except UsageError as unfit:
        return _Ran([("counts", f"{_NO_COUNTS}, since nothing can be run: {unfit}")])
    if problem.task.reference is None:
        facts.append(("check", "none: there is no reference to compare with"))
    else:
        verified = [(instance, plan) for instance, plan in plans if instance.verified]
        verdict = verify(tools.device, build, verified, instructions=tools.instructions)
        facts.append(("check", describe(verdict)))
        if not verdict.passed and not verdict.checks:
            return _Ran([*facts, ("counts", f"{_NO_COUNTS}, since the run failed")])
    instance, plan = plans[0]
    job = Job(instance.case.key, plan, 0, count=False, instructions=tools.instructions)
    measured = tools.profiler.measure(build, job)
    if isinstance(measured, Fault | Execution):
        ended = measured if isinstance(measured, Execution) else Execution(measured)
        return _Ran([*facts, ("counts", f"{_NO_COUNTS}: {describe(judge(ended))}")])
    (measured,) = tools.levels.complete([Measured(build, job, measured)])
    diagnosis = Diagnosis(problem, tools.chip, tools.findings, tools.roofs, HitRates())
    kernel = Candidate(0, None, Proposal(problem.program.text, "the kernel", "user"))
    found = diagnosis(kernel, Evaluation(0, "", verdict, measured), (build, job))
    facts.append(("counts", _origin(measured)))
    ran = bound.running(instance.values, instance.shapes)
    facts += [
        ("note", f"the launch on line {launch.line} does not run on these inputs")
        for launch in unreached(bound.program, [ran])
    ]
    if found.standing is not None:
        facts.append(("limit", f"{found.standing.kind}: {found.standing.because}"))
    return _Ran(facts, measured, found.findings)


def _joined(
    name: str,
    text: str,
    settings: Settings,
    members: Session,
    build: Build,
    ran: _Ran,
) -> Annotation:
    measured = ran.measured
    code = RememberedCode(settings.disassembled)(build.cubin)
    head = [("device", f"{members.choice.name}: {members.choice.reason}")]
    if measured is not None:
        head.append(("time", f"{seconds(measured.seconds)} {measured.source} on {measured.chip}"))
    machine = f"PTX for {members.tools.chip.architecture} by {members.tools.compiler.version}"
    if code is None:
        machine += "; no machine code, since nvdisasm is not installed"
    return annotated(
        name,
        text,
        build,
        code,
        measured.kernels if measured else (),
        ran.findings,
        [*head, *ran.facts, ("code", machine)],
    )


def _origin(measured: Measurement) -> str:
    """Where the counts of the lines come from."""
    kernels = measured.kernels
    if not any(kernel.lines for kernel in kernels):
        why = next((m.reason for m in measured.missing if m.name == "counters"), "no counters")
        return f"{_NO_COUNTS} by line: {why}; --device emulated counts without a GPU"
    sources = {
        f"{kernel.source}, {kernel.sampled}" if kernel.sampled else kernel.source
        for kernel in kernels
    }
    return f"{'; '.join(sorted(sources))}, summed over {number_of(len(kernels), 'launch')}"
