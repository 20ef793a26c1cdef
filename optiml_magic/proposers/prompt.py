"""A step of the search in words: what a model is told before it proposes edits.

Findings go in and counters stay out: raw counters in a prompt are reported to make a model's edits
worse than none, and findings to make them better (KernelPro, arXiv 2606.26453). Texts are joined,
never formatted, so that braces and percent signs of CUDA arrive as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from optiml_magic.chips import CHIPS, Chip
from optiml_magic.model.evaluation import Step
from optiml_magic.model.finding import Action, Evidence, Finding
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.refusal import foremost
from optiml_magic.model.view import View

_MOST_TRIED = 12  # the latest of them
_MOST_OWN = 8  # likewise
_MOST_QUEUED = 8  # the next of them
_MOST_FINDINGS = 8  # they come most severe first
_LIMITS = {
    "memory": "memory traffic",
    "compute": "arithmetic",
    "latency": "latency: too little work in flight",
    "launch": "the overhead of launches",
    "mixed": "several resources at once",
}


def system() -> str:
    """What holds for every question."""
    return "\n".join([text("system"), text("program"), text("reply")])


def user(view: View, count: int, *, exact: bool = False, own: str = "") -> str:
    """The question about one step; ``exact`` asks for the same bits.

    ``own`` is the proposer that asks: what became of its ideas anywhere in the run is told too.
    """
    task = [text("ask").replace("@COUNT@", str(count)), *([text("exact")] if exact else [])]
    return joined(
        ("The program", fenced(view.step.candidate.text)),
        ("What became of it", "\n".join(_standing(view))),
        ("Findings", "\n".join(_findings(view.step))),
        ("Metrics for hypotheses", _metrics(view.step)),
        ("Tried on this program already", "\n".join(_tried(view))),
        ("What became of your other ideas in this search", "\n".join(_own(view, own))),
        ("What waits to be tried", "\n".join(_queued(view))),
        ("What the rules refused and why", "\n".join(_refused(view.step))),
        ("The chip", chip(view.step)),
        ("Your task", "\n".join(task)),
    )


def joined(*sections: tuple[str, str]) -> str:
    """Titles and bodies as one text; what has no body is left out."""
    return "\n\n".join(f"# {title}\n\n{body.strip()}" for title, body in sections if body.strip())


@cache
def text(name: str) -> str:
    """A prompt text of this package."""
    resource = files(__package__).joinpath("prompts", f"{name}.md")
    return resource.read_text(encoding="utf-8")


def fenced(program: str, language: str = "cuda") -> str:
    """A program as it is, in a fence longer than any in it.

    It has no line numbers, since a model copies them into the texts that it wants found. What
    points at a line quotes the line instead.
    """
    longest = max((len(run) for run in re.findall("`{3,}", program)), default=2)
    fence = "`" * (longest + 1)
    return "\n".join([fence + language, program.rstrip("\n"), fence])


def _standing(view: View) -> Iterator[str]:
    evaluation = view.step.evaluation
    yield verdict(view.step)
    if evaluation.measurement:
        yield f"Time: {_time(evaluation.measurement)}{_against(view.step, view.root)}."
    if evaluation.roofline:
        yield f"It is limited by {_LIMITS[evaluation.roofline]}."
    if evaluation.test:
        yield f"It came from the edit `{view.step.candidate.proposal.title}`{_tested(view.step)}."


def verdict(step: Step) -> str:
    """Whether a step is right, and else what is wrong with it, with the line quoted."""
    found = step.evaluation.verdict
    if found.passed:
        return "It is right: " + (found.summary or "it passed every check")
    place = f" at {_line(step, found.line)}" if found.line else ""
    fix = f"; fix: {found.fix}" if found.fix else ""
    return f"It failed ({found.outcome}){place}: {found.summary}{fix}"


def _findings(step: Step) -> Iterator[str]:
    for finding in step.evaluation.findings[:_MOST_FINDINGS]:
        yield f"- [{finding.severity}] {finding.tool}: {finding.cause}{_gain(finding)}"
        for evidence in finding.evidence:
            yield f"  evidence: {_evidence(step, evidence)}"
        for action in finding.actions:
            yield f"  try: {action.advice}{_expected(action)}"


def _expected(action: Action) -> str:
    if not action.metric:
        return ""
    return f" Expected: {Hypothesis(action.metric, action.direction, factor=action.factor)}."


def _gain(finding: Finding) -> str:
    low, high = finding.gain
    return f" Expected speed-up: {low:.3g}x to {high:.3g}x." if high > 1.0 else ""


def _evidence(step: Step, evidence: Evidence) -> str:
    place = f", {_line(step, evidence.line)}" if evidence.line else ""
    figures = f"{evidence.value:.4g} {evidence.unit}, threshold {evidence.threshold:.4g}"
    return f"{evidence.metric} = {figures} ({evidence.source}){place}"


def _metrics(step: Step) -> str:
    measured = step.evaluation.measurement
    return ", ".join(metric.name for metric in measured.metrics) if measured else ""


def _tried(view: View) -> Iterator[str]:
    earlier = len(view.tried) - _MOST_TRIED
    if earlier > 0:
        yield f"({earlier} earlier ones are left out)"
    for step in view.tried[-_MOST_TRIED:]:
        yield f"- {step.candidate.proposal.title}: {_outcome(step, view.step)}"


def _own(view: View, proposer: str) -> Iterator[str]:
    """The latest ideas of a proposer on any program, those told above left out."""
    told = {step.candidate.number for step in (view.step, *view.tried)}
    own = [
        step
        for step in view.evaluated
        if step.candidate.proposal.proposer == proposer and step.candidate.number not in told
    ]
    if len(own) > _MOST_OWN:
        yield f"({len(own) - _MOST_OWN} earlier ones are left out)"
    for step in own[-_MOST_OWN:]:
        yield f"- {step.candidate.proposal.title}: {_outcome(step, view.root)}"


def _queued(view: View) -> Iterator[str]:
    """Titles; of more than a prompt is worth the next to be tried."""
    for idea in view.queued[:_MOST_QUEUED]:
        yield f"- {idea.title}"


def _refused(step: Step) -> Iterator[str]:
    for refusal in foremost(step.refused, step.evaluation.findings):
        place = f", {_line(step, refusal.line)}" if refusal.line else ""
        yield f"- {refusal.rule}: {refusal.reason}{place}"


def _outcome(step: Step, other: Step) -> str:
    """What became of a step, its time beside that of another."""
    evaluation = step.evaluation
    if evaluation.duplicate_of is not None:
        return "the compiler made the same machine code of it as of an earlier program"
    if not evaluation.verdict.passed or evaluation.measurement is None:
        return verdict(step)
    return f"right, {_time(evaluation.measurement)}{_against(step, other)}{_tested(step)}"


def _tested(step: Step) -> str:
    """What was expected of the edit, and what came."""
    hypothesis, test = step.candidate.proposal.hypothesis, step.evaluation.test
    return f"; expected {hypothesis}, {test}" if hypothesis and test else ""


def _against(step: Step, other: Step) -> str:
    """How the times of two steps compare, where they can be compared."""
    before, after = other.evaluation.measurement, step.evaluation.measurement
    if step.candidate.number == other.candidate.number or before is None or after is None:
        return ""
    if (before.source, before.chip) != (after.source, after.chip) or not after.seconds:
        return ""
    name = "the input kernel" if other.candidate.number == 0 else "the program above"
    return f", {before.seconds / after.seconds:.3g}x the speed of {name} ({after.source})"


def _time(measured: Measurement) -> str:
    return f"{measured.seconds * 1e6:.4g} us, {measured.source}, on {measured.chip}"


def chip(step: Step) -> str:
    """The chip that a step was measured on, and what the device lacks; "" where it was not."""
    measured = step.evaluation.measurement
    if measured is None:
        return ""
    parts = [measured.chip]
    if known := CHIPS.get(measured.chip):
        parts = _described(known)
    emulated = text("emulated") if measured.source == "estimated" else ""
    return "\n".join([". ".join(parts) + ".", emulated])


def _described(chip: Chip) -> list[str]:
    major, minor = chip.capability
    shared, most = chip.shared_bytes_per_sm >> 10, chip.shared_bytes_per_block >> 10
    return [
        f"{chip.title}, compute capability {major}.{minor}, {chip.sms} multiprocessors",
        f"Each has {shared} KB of shared memory ({most} KB a block at most)",
        f"Each has {chip.registers_per_sm} registers and room for {chip.warps_per_sm} warps",
        f"DRAM {chip.dram_bandwidth / 1e12:.3g} TB/s, L2 {chip.l2_bytes >> 20} MB",
        f"float32 {chip.fp32_flops / 1e12:.3g} TFLOP/s, float64 {chip.fp64_flops / 1e12:.3g}",
    ]


def _line(step: Step, number: int) -> str:
    lines = step.candidate.text.splitlines()
    quoted = lines[number - 1].strip()[:160] if 0 < number <= len(lines) else ""
    return f"line {number}: `{quoted}`" if quoted else f"line {number}"
