"""Those that are left at the end: scrutinised, and looked at for hazards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from optiml_magic.evaluation import stages
from optiml_magic.evaluation.limit import Limit
from optiml_magic.evaluation.stages import Context
from optiml_magic.model.candidate import Candidate
from optiml_magic.model.verdict import Verdict
from optiml_magic.preparation import Prepared
from optiml_magic.verifiers.hazards import Inspection, inspected


def scrutinised(
    candidates: Sequence[Candidate], context: Context, limit: Limit
) -> tuple[dict[int, Prepared], dict[int, Verdict], int]:
    """Those that stand every trial by number, the verdicts on the others, how many are left out.

    Left out are those that were never the fastest, where there is no time to try them: each is
    taken to need as long as the slowest before it.
    """
    passed: dict[int, Prepared] = {}
    verdicts: dict[int, Verdict] = {}
    slowest, left_out = 0.0, 0
    for at, candidate in enumerate(candidates):
        prepared = stages.prepare(candidate.text, context)
        if isinstance(prepared, Verdict):
            verdicts[candidate.number] = prepared
            continue
        known = context.scrutiny.knows(prepared.identity)
        if at and not known and not limit.affords_finalist(slowest):
            left_out += 1
            continue
        began, first = limit.elapsed, prepared.verified[0][0]
        verdict = context.scrutiny.correctness(prepared.program, prepared.identity, first)
        slowest = max(slowest, limit.elapsed - began)
        if verdict.passed:
            passed[candidate.number] = prepared
        else:
            verdicts[candidate.number] = verdict
    return passed, verdicts, left_out


def hazards(
    finalists: Mapping[int, Prepared], context: Context, seconds: float
) -> tuple[dict[int, Verdict], list[str]]:
    """The verdicts on those with a hazard by number, and notes for the output.

    ``seconds`` is what one run of the slowest was measured to take.
    """
    inspector = context.tools.inspector
    if inspector is None or not finalists:
        return {}, []
    programs = [*finalists.values()]
    inspections = _of_their_own(
        programs, stages.inspect(programs, context, seconds), context, seconds
    )
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
    return {number: one for number, one in verdicts.items() if not one.passed}, notes


def _of_their_own(
    programs: Sequence[Prepared], found: Sequence[Inspection], context: Context, seconds: float
) -> list[Inspection]:
    """What was found, but for hazards at smaller sizes where the input kernel has some as well.

    It may read beyond its arrays there and have the right answer all the same.
    """
    known: dict[str, bool] = {}
    left = []
    for program, inspection in zip(programs, found, strict=True):
        instance, _ = context.inspected(program, seconds)
        smaller = instance is not program.verified[0][0]
        if smaller and inspection.errors:
            place = instance.condition
            if place not in known:
                known[place] = bool(stages.inspect_root(instance, context).errors)
            if known[place]:
                left.append(Inspection((), f"the input kernel has some at {place} as well"))
                continue
        left.append(inspection)
    return left
