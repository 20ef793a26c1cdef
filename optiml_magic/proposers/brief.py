"""What a model is told of a step before it proposes edits: the brief, as titled sections.

Findings go in and counters stay out, but for what bounds the time: raw counters in a prompt are
reported to make a model's edits worse than none, and findings to make them better (KernelPro,
arXiv 2606.26453). A brief has a limit; what matters least is cut first.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from optiml_magic.model.evaluation import Step
from optiml_magic.model.facts import ArrayFacts, Facts
from optiml_magic.model.finding import Action, Evidence, Finding
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import foremost
from optiml_magic.model.view import View
from optiml_magic.proposers.answer import Draft
from optiml_magic.proposers.drafts import one_line
from optiml_magic.proposers.prompt import (
    against,
    chip,
    fenced,
    joined,
    line_of,
    outcome,
    system,
    tested,
    text,
    time_of,
    verdict,
)

LONGEST = 12_000  # characters with those that hold for every question: some 4,000 tokens; ours
_MOST_TRIED = 12  # the latest of them
_MOST_OWN = 8  # likewise
_MOST_FAILED = 4  # likewise
_MOST_QUEUED = 12  # the next of them
_MOST_FINDINGS = 8  # they come most severe first
_MOST_LINES = 40  # of a diff
_MOST_KNOWN = 3
_MOST_BOUNDS = 3
_MOST_METRICS = 16
_LONGEST_SPAN = 4_000  # characters
_CUT = "(the rest is left out)"
_LIMITS = {
    "memory": "memory traffic",
    "compute": "arithmetic",
    "latency": "latency: too little work in flight",
    "launch": "the overhead of launches",
    "mixed": "several resources at once",
}


@dataclass(frozen=True)
class Section:
    """A part of a brief. Of those with the greatest ``rank`` lines are cut first, never at 0.

    One that is ``whole`` stays whole or goes.
    """

    title: str
    body: str
    rank: int = 0
    whole: bool = False


@dataclass(frozen=True)
class Contents:
    """What a question holds beside the program.

    ``reference`` is the text of the function that says what is right, ``exact`` asks for the same
    bits. The others are for experiments: ``feedback`` is what became of edits so far, and of the
    model's own that failed.
    """

    reference: str = ""
    exact: bool = False
    findings: bool = True
    feedback: bool = True
    counters: bool = False


ALL = Contents()


def plan(
    view: View,
    count: int,
    contents: Contents = ALL,
    own: str = "",
) -> str:
    """The question what to try on one step.

    ``own`` is the proposer that asks: the brief has what became of its ideas anywhere in the run.
    """
    step = view.step
    sections = [
        *_program(view, contents),
        Section("What became of it", "\n".join(_standing(view))),
        Section("Findings", "\n".join(_findings(step)) if contents.findings else "", 1),
        Section("Counters", "\n".join(_counters(step)) if contents.counters else "", 2),
        *(_became(view, own) if contents.feedback else ()),
        Section("What waits to be tried", "\n".join(_queued(view)), 6),
        Section("What the rules refused and why", "\n".join(_refused(step)), 8),
        Section("What helped kernels like this one", "\n".join(_known(view)), 9),
        Section("Metrics for hypotheses", _metrics(step), 5),
        Section("The chip", chip(step)),
        _task(text("plan").replace("@COUNT@", str(count)), contents),
    ]
    return fitted(sections, LONGEST - len(system()))


def write(view: View, draft: Draft, contents: Contents = ALL) -> str:
    """The question for the code of one plan."""
    step = view.step
    answered = [f for f in step.evaluation.findings if f.tool == draft.answers]
    findings = "\n".join(_findings(step, answered)) if contents.findings else ""
    sections = [
        *_program(view, contents),
        Section("The finding that the plan answers", findings, 1),
        Section("The chip", chip(step)),
        Section("The plan", "\n\n".join(_planned(draft))),
        _task(text("write"), contents),
    ]
    return fitted(sections, LONGEST - len(system()))


def waiting(view: View) -> tuple[Idea, ...]:
    """What a brief says waits, in its order: of more than it is worth the next to be tried."""
    return view.queued[:_MOST_QUEUED]


def _task(words: str, contents: Contents) -> Section:
    return Section("Your task", "\n".join([words, *([text("exact")] if contents.exact else [])]))


def _program(view: View, contents: Contents) -> Iterator[Section]:
    source = fenced(contents.reference, "python") if contents.reference else ""
    yield Section("The program", fenced(view.step.candidate.text))
    yield Section("Its arrays and launches here", "\n".join(_arrays(view.facts)), 2)
    yield Section("The reference", source, 5, whole=True)


def _became(view: View, own: str) -> Iterator[Section]:
    """What became of edits so far."""
    yield Section("The best program so far", _best(view), 4, whole=True)
    yield Section("How the program came to be", "\n".join(_path(view)), 6)
    yield Section("The last edit", _last_edit(view), 7, whole=True)
    yield Section("Tried on this program already", "\n".join(_tried(view)), 3)
    title = "What became of your other ideas in this search"
    yield Section(title, "\n".join(_own(view, own)), 4)
    yield Section("What failed elsewhere in this search", "\n".join(_failed(view, own)), 7)


def _planned(draft: Draft) -> Iterator[str]:
    yield one_line(draft.title, 200)
    yield one_line(draft.rationale, 2000)
    if draft.span:
        yield f"It is about these lines:\n\n{fenced(draft.span[:_LONGEST_SPAN])}"
    if draft.hypothesis is not None:
        promised = one_line(draft.hypothesis.metric, 120)
        yield f"It should make {promised} {draft.hypothesis.direction}."


def fitted(sections: Sequence[Section], longest: int) -> str:
    """The sections as one text of so many characters at most, where their ranks allow that."""
    kept = [section for section in sections if section.body.strip()]
    while len(whole := _written(kept)) > longest:
        last = max(kept, key=lambda section: section.rank, default=None)
        if last is None or not last.rank:
            break
        at, lines = kept.index(last), [line for line in last.body.splitlines() if line != _CUT]
        before, behind, kept = kept[:at], kept[at + 1 :], [*kept[:at], *kept[at + 1 :]]
        while lines[:-1] and not last.whole:
            lines.pop()
            shorter = replace(last, body="\n".join([*lines, _CUT]), rank=0)
            if len(_written([*before, shorter, *behind])) <= longest:
                kept = [*before, shorter, *behind]
                break
    return whole


def _written(sections: Sequence[Section]) -> str:
    return joined(*((section.title, section.body) for section in sections))


def _arrays(facts: Facts | None) -> Iterator[str]:
    """Roles, types, shapes and scalars at the sizes that are measured; the launches there."""
    if facts is None:
        return
    arrays: dict[str, ArrayFacts] = dict(facts.variables)
    for launch in facts.launches:
        arrays |= {array.buffer: array for array in launch.arrays.values()}
    for name, array in arrays.items():
        shape = ", ".join(map(str, array.shape))
        yield f"- `{name}` ({array.role}): {array.dtype}[{shape}], {array.nbytes} bytes"
    scalars = {name: value for launch in facts.launches for name, value in launch.scalars.items()}
    if scalars:
        yield "- scalars: " + ", ".join(f"{name} = {value:g}" for name, value in scalars.items())
    for launch in facts.launches:
        yield f"- {launch.kernel}: grid {launch.grid}, block {launch.block}"
    yield f"- outputs may be off by {facts.rtol:.2g} relative or {facts.atol:.2g} absolute"


def _standing(view: View) -> Iterator[str]:
    evaluation = view.step.evaluation
    yield verdict(view.step)
    measured, standing = evaluation.measurement, evaluation.standing
    if measured:
        yield f"Time: {time_of(measured)}{against(view.step, view.root)}."
        if standing and standing.floor and standing.distance:
            floor = f"{standing.floor * 1e6:.3g} us"
            yield f"No kernel can do this task in less than {floor}: {standing.distance:.3g}x that."
        longest = measured.bounds[:_MOST_BOUNDS]
        if len(longest) > 1:
            terms = ", ".join(f"{b.resource} {b.seconds * 1e6:.3g} us" for b in longest)
            yield f"Alone they would take: {terms}."
    if evaluation.roofline:
        yield f"It is limited by {_LIMITS[evaluation.roofline]}."
    if evaluation.resources:
        yield f"{_resources(view.step)}."
    if evaluation.test:
        yield f"It came from the edit `{view.step.candidate.proposal.title}`{tested(view.step)}."


def _resources(step: Step) -> str:
    """What the kernels take, and for how many warps that leaves room."""
    found = step.evaluation.resources
    registers = ", ".join(str(one.registers) for one in found)
    parts = [f"Registers a thread: {registers}"]
    if any(one.shared_bytes for one in found):
        parts.append(f"shared memory: {', '.join(str(one.shared_bytes) for one in found)} bytes")
    spilled = sum(one.spill_store_bytes + one.spill_load_bytes for one in found)
    if spilled:
        parts.append(f"{spilled} bytes are spilled")
    measured = step.evaluation.measurement
    occupancy = measured.get("sm__maximum_warps_per_active_cycle_pct") if measured else None
    if occupancy is not None:
        parts.append(f"room for {occupancy:.0f} % of the warps")
    return "; ".join(parts)


def _findings(step: Step, chosen: Sequence[Finding] | None = None) -> Iterator[str]:
    """Each advice once, with all the places that it is about; of all findings, or of some."""
    groups: dict[tuple[str, tuple[str, ...]], list[Finding]] = {}
    for finding in (step.evaluation.findings if chosen is None else chosen)[:_MOST_FINDINGS]:
        advice = tuple(action.advice for action in finding.actions)
        groups.setdefault((finding.tool, advice), []).append(finding)
    for first, *others in groups.values():
        yield f"- [{first.severity}] {first.tool}: {first.cause}{_gain(first)}"
        for evidence in first.evidence:
            yield f"  evidence: {_evidence(step, evidence)}"
        for other in others:
            yield f"  likewise: {other.cause}"
        for action in first.actions:
            yield f"  try: {action.advice}{_expected(action)}"


def _expected(action: Action) -> str:
    if not action.metric:
        return ""
    return f" Expected: {Hypothesis(action.metric, action.direction, factor=action.factor)}."


def _gain(finding: Finding) -> str:
    low, high = finding.gain
    return f" Expected speed-up: {low:.3g}x to {high:.3g}x." if high > 1.0 else ""


def _evidence(step: Step, evidence: Evidence) -> str:
    place = f", {line_of(step, evidence.line)}" if evidence.line else ""
    figures = f"{evidence.value:.4g} {evidence.unit}, threshold {evidence.threshold:.4g}"
    return f"{evidence.metric} = {figures} ({evidence.source}){place}"


def _metrics(step: Step) -> str:
    """Those that the findings are about, and more of those that were measured."""
    measured = step.evaluation.measurement
    known = {metric.name for metric in measured.metrics} if measured else set()
    named = [
        name
        for finding in step.evaluation.findings
        for name in (*(a.metric for a in finding.actions), *(e.metric for e in finding.evidence))
        if name in known
    ]
    others = [metric.name for metric in measured.metrics] if measured else []
    return ", ".join([*dict.fromkeys([*named, *others])][:_MOST_METRICS])


def _best(view: View) -> str:
    """How the best differs from the program, where it is another."""
    best, step = view.best, view.step
    if best is None or best.candidate.number == step.candidate.number:
        return ""
    told = f"{best.candidate.proposal.title}: {outcome(best, step)}"
    return "\n".join([told, fenced("\n".join(_diff(step, best)), "diff")])


def _diff(one: Step, other: Step) -> list[str]:
    """The changed lines with one of their neighbours, as far as that is short."""
    before, after = (step.candidate.text.splitlines() for step in (one, other))
    lines = list(difflib.unified_diff(before, after, "before", "after", lineterm="", n=1))
    more = len(lines) - _MOST_LINES
    return [*lines[:_MOST_LINES], *([f"({more} more lines)"] if more > 0 else [])]


def _path(view: View) -> Iterator[str]:
    """The edits from the root to the program, each with what it brought."""
    for before, after in pairwise(_steps(view)):
        yield f"- {after.candidate.proposal.title}: {outcome(after, before)}"


def _last_edit(view: View) -> str:
    steps = _steps(view)
    return fenced("\n".join(_diff(*steps[-2:])), "diff") if len(steps) > 1 else ""


def _steps(view: View) -> list[Step]:
    """The root of the program and what came of it, step by step."""
    begun = view.begun
    return [begun, *(s for s in view.path if s.candidate.number != begun.candidate.number)]


def _tried(view: View) -> Iterator[str]:
    earlier = len(view.tried) - _MOST_TRIED
    if earlier > 0:
        yield f"({earlier} earlier ones are left out)"
    for step in view.tried[-_MOST_TRIED:]:
        yield f"- {step.candidate.proposal.title}: {outcome(step, view.step)}"


def _own(view: View, proposer: str) -> Iterator[str]:
    """The latest ideas of a proposer on any other program."""
    own = [s for s in _elsewhere(view) if s.candidate.proposal.proposer == proposer]
    if len(own) > _MOST_OWN:
        yield f"({len(own) - _MOST_OWN} earlier ones are left out)"
    for step in own[-_MOST_OWN:]:
        yield f"- {step.candidate.proposal.title}: {outcome(step, view.root)}"


def _failed(view: View, proposer: str) -> Iterator[str]:
    """The latest of other proposers that failed on any other program."""
    failed = [
        step
        for step in _elsewhere(view)
        if not step.evaluation.verdict.passed
        and step.evaluation.duplicate_of is None
        and step.candidate.proposal.proposer != proposer
    ]
    for step in failed[-_MOST_FAILED:]:
        yield f"- {step.candidate.proposal.title}: {verdict(step)}"


def _elsewhere(view: View) -> Iterator[Step]:
    """What was evaluated, but the program itself and what was made of it."""
    here = {step.candidate.number for step in (view.step, *view.tried)}
    return (step for step in view.evaluated if step.candidate.number not in here)


def _counters(step: Step) -> Iterator[str]:
    measured = step.evaluation.measurement
    for metric in measured.metrics if measured else ():
        yield f"- {metric.name} = {metric.value:.6g} {metric.unit}"


def _queued(view: View) -> Iterator[str]:
    for number, idea in enumerate(waiting(view), 1):
        yield f"{number}. {idea.title}"


def _refused(step: Step) -> Iterator[str]:
    for refusal in foremost(step.refused, step.evaluation.findings):
        place = f", {line_of(step, refusal.line)}" if refusal.line else ""
        yield f"- {refusal.rule}: {refusal.reason}{place}"


def _known(view: View) -> Iterator[str]:
    """The paths that won on kernels of its kind, by the names of the rules."""
    limit = view.step.evaluation.roofline or ""
    entries = [entry for _, entry in view.known.weighed(limit) if entry.moves]
    for entry in entries[:_MOST_KNOWN]:
        names = [move.split()[0] for move in entry.path]
        yield f"- {', then '.join(names)}: {entry.gain:.3g}x ({entry.evidence.source})"
