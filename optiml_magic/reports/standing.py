"""Where a kernel stands under the roofs, and which levels of measurement did not answer."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.model.evaluation import Step
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.roofline import Standing
from optiml_magic.model.vocabulary import LEVEL_OF, LEVELS
from optiml_magic.reports.quantities import count, ratio, seconds


def above_floor(standing: Standing) -> str:
    """``4.2x above its floor of 31 us``; what is known instead where there is no floor."""
    if standing.floor is None or standing.distance is None:
        return "no floor: neither the operations nor the bytes of the task are known"
    floor = seconds(standing.floor)
    if standing.distance < 1:
        why = "some data stayed in the caches, or were not needed"
        if standing.by_operations:
            why = "it does fewer operations than the task was taken for; declare its flops"
        return f"below the floor of {floor}: {why}"
    return f"{ratio(standing.distance)} above its floor of {floor}"


def floor(root: Step, winner: Step) -> str:
    """How far the input kernel and the winner are above the floor, as they were timed last."""
    ends = {"baseline": root.evaluation, "best": winner.evaluation}
    places = {
        name: above_floor(replace(found.standing, seconds=found.measurement.seconds))
        for name, found in ends.items()
        if found.standing is not None and found.measurement is not None
    }
    return ", ".join(f"{name} {place}" for name, place in places.items())


def lines(standing: Standing) -> list[tuple[str, str]]:
    """Facts by name: the class, the floor, and the roofs."""
    work, roofs = standing.work, standing.roofs
    needs = [
        f"{count(amount)} {unit} ({basis})"
        for amount, unit, basis in (
            (work.bytes, "bytes", work.bytes_basis),
            (work.flops, "operations", work.flops_basis),
        )
        if amount is not None
    ]
    roof = roofs.compute(work.precision)
    measured = f"{roofs.memory / 1e12:.3g} TB/s, {roof / 1e12:.3g} TFLOP/s {work.precision}"
    note = f"; {roofs.note}" if roofs.note else ""
    return [
        ("class", f"{standing.kind}: {standing.because}"),
        ("floor", above_floor(standing)),
        ("task", f"at least {', '.join(needs) or 'unknown'}"),
        ("roofs", f"{measured}, {roofs.source}{note}"),
    ]


def levels(measured: Measurement) -> list[str]:
    """The levels that answered in one line, then each that did not with its reason."""
    sources = {LEVEL_OF[metric.source] for metric in measured.metrics} | {LEVEL_OF[measured.source]}
    answered = [level for level in LEVELS if level in sources]
    absent = {m.name: m.reason for m in measured.missing if m.name not in sources}
    named = [f"{name}: {reason}" for name, reason in absent.items() if name in LEVELS]
    reasons: dict[str, list[str]] = {}
    for name, reason in absent.items():
        if name not in LEVELS:
            reasons.setdefault(reason, []).append(name)
    single = [f"{', '.join(names)}: {reason}" for reason, names in reasons.items()]
    return [f"measured: {', '.join(answered)}", *(f"missing {x}" for x in (*named, *single))]
