"""The winner at one other size: a gain at the sizes of the task may be a loss beside them."""

from __future__ import annotations

from optiml_magic.devices.base import Job
from optiml_magic.errors import RequirementError, UsageError
from optiml_magic.evaluation.stages import Context
from optiml_magic.model.measurement import Measurement, speedup_interval
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.preparation import Prepared
from optiml_magic.verifiers.verify import fresh_poison, verify


def elsewhere(root: Prepared, winner: Prepared, context: Context) -> str | Verdict:
    """What came of the winner at half the sizes, in a sentence; the verdict where it is wrong.

    "" where the input kernel is not right there, where inputs of other sizes cannot be made, or
    where one of the two could not be measured.
    """
    tools = context.tools
    instance = context.scrutiny.trials.elsewhere()
    if instance is None:
        return ""
    try:
        plans = [one.program.plan(instance) for one in (root, winner)]
    except RequirementError as narrower:
        return f"the winner does not run at {instance.condition}: {narrower.message}"
    except UsageError as unfit:
        return Verdict(Outcome.INVALID, unfit.message, line=unfit.line or 0, fix=unfit.fix)
    instructions = tools.instructions
    if instance.verified:
        compared = [(instance, plans[1])]
        verdict = verify(tools.device, winner.build, compared, instructions=instructions)
        if not verdict.passed:
            return verdict
    tools.profiler.begin()
    found = []
    for program, plan in zip((root, winner), plans, strict=True):
        job = Job(instance.case.key, plan, fresh_poison(), False, instructions)
        measured = tools.profiler.measure(program.build, job)
        if not isinstance(measured, Measurement):
            return ""
        found.append(measured)
    gain, low, high = speedup_interval(*found)
    told = f"{gain:.3g}x ({low:.3g}x to {high:.3g}x), {found[0].source}"
    if high < 1.0:
        return f"slower than the input kernel at {instance.condition}: {told}"
    return f"at half the sizes, {instance.condition}: {told}"
