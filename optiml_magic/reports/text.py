"""A run as plain text, for a terminal and for ``text/plain``. Deterministic but for the times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.model.evaluation import Step
from optiml_magic.model.finding import Finding
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Verdict
from optiml_magic.printable import printable
from optiml_magic.reports import thoughts
from optiml_magic.reports.advice import merged
from optiml_magic.reports.outcome import bars, bounds, claim, limit
from optiml_magic.reports.quantities import count, ratio, seconds
from optiml_magic.reports.standing import floor
from optiml_magic.reports.summary import (
    Summary,
    changed_arithmetic,
    drawn,
    promise,
    step_speedup,
)  # fmt: skip

_WIDE = 40  # characters of the longest bar


def headline(summary: Summary) -> str:
    """One sentence: what came out."""
    verdict = summary.root.evaluation.verdict
    if not verdict.passed:
        return f"{summary.task}: {claim(summary)}: {describe(verdict)}"
    if not (told := bounds(summary)):
        return f"{summary.task}: {claim(summary)}"
    narrowed = f"; {where}" if (where := only(summary)) else ""
    return f"{summary.task}: {claim(summary)}, {summary.source} ({told}), verified{narrowed}"


def only(summary: Summary) -> str:
    """What the winner requires of the sizes; empty where nothing."""
    where = " and ".join(summary.only_where)
    return f"only where {where}" if where else ""


def baselines(summary: Summary) -> Iterator[tuple[str, str]]:
    """What speed-ups are over, and where that is a peer, what the search began from."""
    if (peer := summary.peer) is not None:
        yield "baseline", f"{seconds(peer.seconds)} {summary.source}: {peer.name}, {peer.how}"
    of = f": {summary.baseline}" if summary.author else ""
    yield "begun from" if peer else "baseline", f"{_time(summary.root)}{of}"


def describe(verdict: Verdict) -> str:
    """A verdict in a line or two: outcome, line, what, fix."""
    where = f"line {verdict.line}: " if verdict.line else ""
    fix = f"\n  fix: {verdict.fix}" if verdict.fix else ""
    return printable(f"{verdict.outcome}: {where}{verdict.summary}{fix}")


def pictures(verdict: Verdict) -> list[str]:
    """Where each wrong output is wrong, as lines."""
    lines = []
    for check in verdict.checks:
        if check.picture:
            legend = "where it is wrong (. nowhere, + here and there, # everywhere)"
            lines += [f"{check.name}: {legend}", *(f"  {row}" for row in check.picture)]
    return lines


def render(summary: Summary) -> str:
    """The whole report."""
    return printable("\n".join(_lines(summary)))


def facts(summary: Summary) -> Iterator[tuple[str, str]]:
    """How the run was made, and what it came to in all, by name."""
    if summary.run:
        yield "run", f"{summary.run} (optiml replay {summary.run})"
    yield "device", f"{summary.device}: {summary.device_reason}"
    if summary.model:
        yield "model", summary.model
    yield "checked by", summary.oracle
    yield "launch", summary.launch
    yield from baselines(summary)
    yield "best", f"{_time(summary.winner)}: {summary.recipe}"
    if told := drawn(summary):
        yield "energy", told
    if floors := floor(summary.root, summary.winner):
        yield "floor", floors
    if arithmetic := changed_arithmetic(summary):
        yield "arithmetic", arithmetic
    verdicts = ", ".join(f"{number} {name}" for name, number in summary.verdicts.items())
    spent = f"{len(summary.trajectory.steps)} in {summary.wall_seconds:.1f} s"
    yield "evaluations", f"{spent} ({verdicts})"
    yield from _failures(summary)
    if summary.hypotheses:
        yield "hypotheses", ", ".join(f"{n} {name}" for name, n in summary.hypotheses.items())
    yield "ended", summary.trajectory.stopped
    yield from (("note", note) for note in summary.notes)


def _failures(summary: Summary) -> Iterator[tuple[str, str]]:
    """Why programs did not pass, a line for each reason that several may have."""
    why = dict[tuple[str, str], list[int]]()
    for step in summary.trajectory.steps:
        verdict = step.evaluation.verdict
        if not verdict.passed:
            key = verdict.outcome.value, verdict.summary
            why.setdefault(key, []).append(step.candidate.number)
    for (outcome, reason), numbers in why.items():
        yield outcome, f"{', '.join(f'#{n}' for n in numbers)}: {reason}"


def _lines(summary: Summary) -> Iterator[str]:
    yield headline(summary)
    yield from _bars(summary)
    if told := limit(summary.winner):
        yield f"  {told}"
    path = summary.trajectory.lineage(summary.winner)
    if summary.winner is not summary.root:
        yield from _section("diff", summary.diff().splitlines())
        yield from _section("how it got there", _steps(summary, path))
    elif len(summary.trajectory.steps) > 1:
        yield from _section("what was tried", _steps(summary, summary.trajectory.steps[1:]))
    yield from _section("thoughts", thoughts.lines(summary))
    if summary.winner is not summary.root:
        best = findings(summary.winner.evaluation.findings)
        yield from _section("findings on the best", best)
    on_root = findings(summary.root.evaluation.findings)
    yield from _section(f"findings on {summary.baseline}", on_root)
    for program, refusals in summary.not_tried:
        yield from _section(f"not tried on {program}", [str(refusal) for refusal in refusals])
    yield from _section("details", [f"{name:<12} {told}" for name, told in facts(summary)])


def _bars(summary: Summary) -> Iterator[str]:
    """The times beside each other."""
    shown = bars(summary)
    longest = max((bar.seconds for bar in shown), default=1.0)
    width = max((len(bar.name) for bar in shown), default=0)
    for bar in shown:
        filled = "#" * max(1, round(_WIDE * bar.seconds / longest))
        yield f"  {bar.name:<{width}}  {filled:<{_WIDE}}  {bar.told}"


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)


def findings(found: Sequence[Finding]) -> list[str]:
    """What was found, the worst first, and below it what to try first; equal advice once."""
    lines = []
    for advice in merged(found):
        lines += [f"[{f.severity}] {f.tool}: {f.cause}" for f in advice.findings]
        lines += [f"    try: {action.told}" for action in advice.actions[:1]]
    return [printable(line) for line in dict.fromkeys(lines)]


def measurement(measured: Measurement) -> list[str]:
    """Seconds with the terms behind them, then every metric with its source."""
    terms = ", ".join(f"{b.resource} {seconds(b.seconds)}" for b in measured.bounds[:3])
    lines = [f"{seconds(measured.seconds)} {measured.source} on {measured.chip} (limits: {terms})"]
    width = max((len(metric.name) for metric in measured.metrics), default=0)
    lines += [
        f"{metric.name:<{width}}  {count(metric.value):>10} {metric.unit}  [{metric.origin}]"
        for metric in measured.metrics
    ]
    return lines


def _steps(summary: Summary, steps: Sequence[Step]) -> list[str]:
    """Each step with its speed-up; below it what was expected of the edit and what came."""
    lines = []
    for step in steps:
        gain = step_speedup(summary, step)
        lines.append(
            f"#{step.candidate.number:<3} {ratio(gain) if gain else '-':>6} {summary.source}  "
            f"{step.candidate.proposal.title}"
        )
        told = promise(step)
        if told:
            lines += [f"     expected {told[0]}", f"     {told[1]}"]
    return lines


def _time(step: Step) -> str:
    measured = step.evaluation.measurement
    if measured is None:
        return str(step.evaluation.verdict.outcome)
    return f"{seconds(measured.seconds)} {measured.source}"
