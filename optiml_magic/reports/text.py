"""A run as plain text, for a terminal and for ``text/plain``. Deterministic but for the times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.model.evaluation import Step
from optiml_magic.model.finding import Finding
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Verdict
from optiml_magic.printable import printable
from optiml_magic.reports import thoughts
from optiml_magic.reports.quantities import count, ratio, seconds
from optiml_magic.reports.standing import floor
from optiml_magic.reports.summary import (
    Summary,
    changed_arithmetic,
    drawn,
    promise,
    step_speedup,
)  # fmt: skip


def headline(summary: Summary) -> str:
    """One sentence: what came out."""
    verdict = summary.root.evaluation.verdict
    if not verdict.passed:
        return f"{summary.task}: {summary.baseline} failed: {describe(verdict)}"
    if summary.peer is not None and summary.saving is None:
        return f"{summary.task}: {_beside(summary)}, {summary.source}, verified{_only(summary)}"
    if summary.winner is summary.root:
        tried = len(summary.trajectory.steps) - 1
        return f"{summary.task}: no significant change found in {tried} candidates"
    low, high = summary.interval
    saved, least, most = summary.saving or (1.0, 1.0, 1.0)
    if least > 1.0:
        return (
            f"{summary.task}: {ratio(saved)} fewer joules (between {ratio(least)} and "
            f"{ratio(most)}) at {ratio(summary.speedup)} the speed, {summary.source}, verified"
            + _only(summary)
        )
    return (
        f"{summary.task}: {ratio(summary.speedup)} faster, {summary.source} "
        f"(between {ratio(low)} and {ratio(high)}), verified{_only(summary)}"
    )


def _only(summary: Summary) -> str:
    where = " and ".join(summary.only_where)
    return f"; only where {where}" if where else ""


def _beside(summary: Summary) -> str:
    """How the winner compares with the peer."""
    assert summary.peer is not None
    (low, high), found = summary.interval, summary.speedup
    between = f"(between {ratio(low)} and {ratio(high)})"
    if low > 1:
        return f"{ratio(found)} faster than {summary.peer.name} {between}"
    if high < 1:
        return f"slower than {summary.peer.name}, {ratio(found)} its speed {between}"
    return f"about as fast as {summary.peer.name}, {ratio(found)} its speed {between}"


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


def _lines(summary: Summary) -> Iterator[str]:
    yield headline(summary)
    yield f"  device       {summary.device}: {summary.device_reason}"
    if summary.model:
        yield f"  model        {summary.model}"
    yield f"  checked by   {summary.oracle}"
    yield f"  launch       {summary.launch}"
    for name, told in baselines(summary):
        yield f"  {name:<12} {told}"
    yield f"  best         {_time(summary.winner)}: {summary.recipe}"
    if told := drawn(summary):
        yield f"  energy       {told}"
    floors = floor(summary.root, summary.winner)
    if floors:
        yield f"  floor        {floors}"
    arithmetic = changed_arithmetic(summary)
    if arithmetic:
        yield f"  arithmetic   {arithmetic}"
    verdicts = ", ".join(f"{number} {name}" for name, number in summary.verdicts.items())
    spent = f"{len(summary.trajectory.steps)} in {summary.wall_seconds:.1f} s"
    yield f"  evaluations  {spent} ({verdicts}); {summary.trajectory.stopped}"
    if summary.hypotheses:
        states = ", ".join(f"{number} {name}" for name, number in summary.hypotheses.items())
        yield f"  hypotheses   {states}"
    for note in summary.notes:
        yield f"  note         {note}"
    yield from _section("thoughts", thoughts.lines(summary))
    yield from _section(
        f"findings on {summary.baseline}", findings(summary.root.evaluation.findings)
    )
    if summary.winner is not summary.root:
        path = summary.trajectory.lineage(summary.winner)
        yield from _section("how it got there", _steps(summary, path))
        yield from _section("diff", summary.diff().splitlines())
    elif len(summary.trajectory.steps) > 1:
        tried = summary.trajectory.steps[1:]
        yield from _section("what was tried", _steps(summary, tried))
    for program, refusals in summary.not_tried:
        yield from _section(f"not tried on {program}", [str(refusal) for refusal in refusals])


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)


def findings(found: Sequence[Finding]) -> list[str]:
    """Each finding in a line, its first action below it."""
    lines = []
    for finding in found:
        lines.append(f"[{finding.severity}] {finding.tool}: {finding.cause}")
        lines += [f"    try: {action.told}" for action in finding.actions[:1]]
    return [printable(line) for line in lines]


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
