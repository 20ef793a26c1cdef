"""Running a candidate on every case and judging what the device says."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import replace

from optiml_magic.devices.base import Device, Execution, Job, Order
from optiml_magic.errors import InternalError, KernelFailed, KernelUnsupported
from optiml_magic.model.build import Build
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome, OutputCheck, Verdict
from optiml_magic.problem import Instance
from optiml_magic.verifiers.hazards import Inspector

_IN_FLOAT = 1e-5  # relative error that float arithmetic explains in a double; ours


def verify(
    device: Device,
    build: Build,
    plans: Sequence[tuple[Instance, LaunchPlan]],
    *,
    instructions: int,
    notes: Sequence[str] = (),
    inspector: Inspector | None = None,
    difference: Callable[[Instance], str] = lambda _: "",
) -> Verdict:
    """The verdict over all cases; it stops at the first that fails.

    ``difference`` says what is wrong all the same with outputs that are within the tolerance. An
    ``inspector`` is asked which thread wrote the first wrong element: a run more.

    Outputs hold a pattern that cannot be predicted and that differs from one launch to the next, so
    that an answer left behind by an earlier run cannot pass for a new one.
    """
    checks: tuple[OutputCheck, ...] = ()
    counts = set[int]()
    printed = ""
    if not plans:
        raise InternalError("a verification without a case would pass anything")
    for at, (instance, plan) in enumerate(plans):
        order: Order = "reverse" if at % 2 else "forward"
        job = Job(instance.case.key, plan, fresh_poison(), False, instructions, order)
        verdict = judge(device.execute(build, job), instance.condition)
        if not verdict.passed:
            return blamed(verdict, inspector, build, job, instance.condition)
        inexact = difference(instance)
        if inexact:
            return replace(verdict, outcome=Outcome.WRONG, summary=inexact)
        printed = printed or verdict.printed
        written = [buffer.name for buffer in instance.case.buffers if buffer.role != "input"]
        if not written or [check.name for check in verdict.checks] != written:
            raise InternalError(f"outputs {written} were not all compared: {verdict.checks}")
        checks = worst(checks, verdict.checks)
        counts.add(sum(check.elements for check in verdict.checks))
    elements = f"up to {max(counts)}" if len(counts) > 1 else str(max(counts))
    sets = "1 set" if len(plans) == 1 else f"{len(plans)} sets"
    summary = f"{elements} output elements right on {sets} of inputs"
    return Verdict(Outcome.PASSED, summary, checks=checks, notes=tuple(notes), printed=printed)


def judge(execution: Execution, condition: str = "") -> Verdict:
    """The verdict on one execution; ``condition`` says on which inputs."""
    fault = execution.fault
    on = f" (on {condition})" if condition and not condition.startswith("seed ") else ""
    printed = execution.printed
    if fault is not None:
        where = f" in block {fault.block}, thread {fault.thread}" if fault.block else ""
        message = f"{fault.message}{where}{on}"
        return Verdict(fault.outcome, message, line=fault.line, printed=printed)
    if execution.modified_inputs:
        names = ", ".join(execution.modified_inputs)
        return Verdict(
            Outcome.INPUT_MODIFIED,
            f"the kernel wrote to its input {names}{on}",
            fix="write to the outputs alone, or declare the buffer in-out",
            printed=printed,
        )
    for check in execution.checks:
        if not check.passed:
            summary = _describe(check, condition)
            return Verdict(Outcome.WRONG, summary, checks=execution.checks, printed=printed)
    return Verdict(Outcome.PASSED, "", checks=execution.checks, printed=printed)


def failure(verdict: Verdict, what: str = "the kernel") -> KernelFailed:
    """The exception for a verdict on a kernel that is not a pass; ``what`` says on which."""
    if verdict.outcome is Outcome.UNSUPPORTED:
        return KernelUnsupported(
            f"the device cannot run {what}: {verdict.summary}",
            fix=verdict.fix or "run it on another device: optiml doctor lists what is here",
            line=verdict.line,
        )
    return KernelFailed(
        f"{what} failed, {verdict.outcome}: {verdict.summary}",
        fix=verdict.fix,
        line=verdict.line,
    )


def blamed(
    verdict: Verdict, inspector: Inspector | None, build: Build, job: Job, condition: str
) -> Verdict:
    """The verdict with the thread that wrote the first wrong element, where somebody can tell."""
    check = next((check for check in verdict.checks if not check.passed), None)
    writer = inspector.writer(build, job, check) if inspector and check else None
    if writer is None or check is None:
        return verdict
    told = replace(check, writer=writer)
    checks = tuple(told if c is check else c for c in verdict.checks)
    summary = _describe(told, condition)
    return replace(verdict, summary=summary, line=verdict.line or writer.line, checks=checks)


def fresh_poison() -> int:
    """A seed for the pattern in the outputs."""
    return secrets.randbits(31)


def worst(
    earlier: tuple[OutputCheck, ...], later: tuple[OutputCheck, ...]
) -> tuple[OutputCheck, ...]:
    """Of each output the check with the larger error."""
    if not earlier:
        return later
    pairs = zip(earlier, later, strict=True)
    return tuple(one if one.error >= two.error else two for one, two in pairs)


def _describe(check: OutputCheck, condition: str) -> str:
    index = ", ".join(map(str, check.first_index))
    on = f" on {condition}" if condition else ""
    text = (
        f"{check.wrong} of {check.elements} elements of `{check.name}` are wrong{on}: "
        f"first {check.name}[{index}] = {check.got}, wanted {check.wanted}"
    )
    if check.writer is not None:
        who = check.writer
        text += f", written by thread {who.thread} of block {who.block}"
    if check.comparable and check.max_ulp and check.max_abs_error:
        of = " of the finite ones" if check.nonfinite else ""
        text += f"; the worst{of} is off by {check.max_abs_error:.3g}, {check.max_ulp:.3g} ulp"
    if check.nonfinite:
        text += f"; {check.nonfinite} are NaN or infinite and should not be"
    if check.unwritten:
        text += f"; {check.unwritten} were never written"
    elif 0 < check.rtol < check.error <= _IN_FLOAT and not check.nonfinite:
        text += "; an error of this size is usual in float arithmetic: if that is intended, "
        text += f"give rtol={_IN_FLOAT:g}"
    return text
