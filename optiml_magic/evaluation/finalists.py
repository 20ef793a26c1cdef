"""The hazards of those that are left at the end, looked for together, since that is slow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from optiml_magic.evaluation import stages
from optiml_magic.evaluation.stages import Context
from optiml_magic.model.verdict import Verdict
from optiml_magic.preparation import Prepared
from optiml_magic.verifiers.hazards import inspected


def hazards(
    finalists: Mapping[int, Prepared], context: Context, seconds: float
) -> tuple[dict[int, Verdict], list[str]]:
    """A verdict on each by number, and what is to be told; nothing where nobody can look.

    ``seconds`` is what one run of the slowest was measured to take.
    """
    inspector = context.tools.inspector
    if inspector is None or not finalists:
        return {}, []
    programs = [*finalists.values()]
    inspections = stages.inspect(programs, context, seconds)
    smaller = {
        instance.condition
        for one in programs
        if (instance := context.inspected(one, seconds)[0]) is not one.verified[0][0]
    }
    where = f" at {', '.join(sorted(smaller))}, since it is slow" if smaller else ""
    reasons = {i.unchecked for i in inspections if i.unchecked}
    notes = [
        f"hazards of the finalists: not all were looked for; {'; '.join(sorted(reasons))}"
        if reasons
        else f"hazards of the finalists: {inspector.name} looked for them{where}"
    ]
    verdicts = {
        number: inspected(stages.passed(), replace(inspection, unchecked=""))
        for number, inspection in zip(finalists, inspections, strict=True)
    }
    notes += [f"candidate {n}: {note}" for n, verdict in verdicts.items() for note in verdict.notes]
    return verdicts, notes
