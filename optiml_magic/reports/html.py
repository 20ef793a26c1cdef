"""A run as static HTML: no script, no link, nothing to load; it survives nbconvert and GitHub."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.model.evaluation import Step
from optiml_magic.model.finding import Finding
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Verdict
from optiml_magic.reports import lines, text, thoughts
from optiml_magic.reports.figure import Picture
from optiml_magic.reports.markup import Markup, document, element
from optiml_magic.reports.pictures import pictures
from optiml_magic.reports.quantities import count, ratio, seconds
from optiml_magic.reports.standing import floor
from optiml_magic.reports.summary import (
    Summary,
    changed_arithmetic,
    drawn,
    promise,
    step_speedup,
)  # fmt: skip

_CELL = "padding:2px 10px 2px 0;text-align:left;vertical-align:top"
_CODE = "font-family:monospace;font-size:12px;line-height:1.35;white-space:pre;overflow-x:auto"
# A page, a light theme or a dark one: tints that let its own text through, and words in colours
# with a contrast above 4 on white and on #111.
_TINTS = {
    "+": "background-color:rgba(46,160,67,0.18)",
    "-": "background-color:rgba(248,81,73,0.18)",
    "@": "color:#7d7d7d",
}
SEVERITY = {"critical": "#d94a40", "warning": "#a87400", "note": "#7d7d7d"}


def page(summaries: Sequence[Summary], title: str) -> str:
    """A whole page of runs for a file."""
    return document(title, *(fragment(summary) for summary in summaries))


def fragment(summary: Summary) -> Markup:
    """The report of one run, to be set into a notebook or a page."""
    parts = [element("h3", text.headline(summary)), _facts(summary)]
    if summary.thoughts:
        table = _table(thoughts.HEAD, thoughts.rows(summary))
        parts.append(_section("Thoughts", table, is_open=True))
    found = summary.root.evaluation.findings
    if found:
        parts.append(_section(f"Findings on {summary.baseline}", _findings(found), is_open=True))
    if summary.winner is not summary.root:
        parts.append(_section("Diff", _diff(summary.diff()), is_open=True))
    if summary.root.evaluation.measurement is not None:
        parts.append(_section("Pictures", _pictures(summary), is_open=True))
    parts.append(_section("Best program", _code(summary.winner.candidate.text), is_open=False))
    parts.append(_section("Trajectory", _trajectory(summary), is_open=False))
    if summary.not_tried:
        parts.append(_section("Not tried", _not_tried(summary), is_open=False))
    return element("div", *parts)


def verdict(task: str, found: Verdict, facts: Sequence[tuple[str, str]]) -> Markup:
    """What ``check`` says of one kernel; ``facts`` stand below it."""
    where = f"line {found.line}: " if found.line else ""
    rows = [("why", where + found.summary), *([("fix", found.fix)] if found.fix else []), *facts]
    parts = [element("h3", f"{task}: {found.outcome}"), _table([], rows)]
    drawn = text.pictures(found)
    if drawn:
        parts.append(element("pre", "\n".join(drawn), style=_CODE))
    return element("div", *parts)


def profile(
    headline: str, measured: Measurement, found: Sequence[Finding], facts: Sequence[tuple[str, str]]
) -> Markup:
    """What ``profile`` says of one kernel: what limits it, and, folded, every metric."""
    limits = ", ".join(f"{b.resource} {seconds(b.seconds)}" for b in measured.bounds[:3])
    rows = [
        ("time", f"{seconds(measured.seconds)} {measured.source} on {measured.chip}"),
        ("limits", limits),
        *facts,
    ]
    metrics = [(m.name, count(m.value), m.unit, m.origin) for m in measured.metrics]
    parts = [element("h3", headline), _table([], rows)]
    if found:
        parts.append(_section("Findings", _findings(found), is_open=True))
    by_line = lines.cells(measured)
    if by_line:
        parts.append(_section("By line", _table(list(lines.HEAD), by_line), is_open=False))
    table = _table(["metric", "value", "unit", "source"], metrics)
    parts.append(_section(f"{len(metrics)} metrics", table, is_open=False))
    return element("div", *parts)


def _facts(summary: Summary) -> Markup:
    verdicts = ", ".join(f"{number} {name}" for name, number in summary.verdicts.items())
    hypotheses = ", ".join(f"{number} {name}" for name, number in summary.hypotheses.items())
    rows = [
        ("device", f"{summary.device}: {summary.device_reason}"),
        *([("model", summary.model)] if summary.model else []),
        *text.baselines(summary),
        ("best", f"{_time(summary.winner)}: {summary.recipe}"),
        *([("energy", joules)] if (joules := drawn(summary)) else []),
        *([("floor", place)] if (place := floor(summary.root, summary.winner)) else []),
        *([("arithmetic", told)] if (told := changed_arithmetic(summary)) else []),
        ("checked by", summary.oracle),
        ("launch", summary.launch),
        ("evaluations", f"{len(summary.trajectory.steps)} ({verdicts})"),
        *([("hypotheses", hypotheses)] if hypotheses else []),
        ("ended", summary.trajectory.stopped),
        *(("note", note) for note in summary.notes),
    ]
    return _table([], rows)


def _findings(found: Sequence[Finding]) -> Markup:
    items = []
    for finding in found:
        color = f"color:{SEVERITY[finding.severity]};font-weight:600"
        low, high = finding.gain
        items.append(
            element(
                "li",
                element("span", f"{finding.severity} ", style=color),
                finding.cause,
                f" Expected gain {ratio(low)} to {ratio(high)}"
                + (f": {finding.reason}." if finding.reason else "."),
                element("ul", *(element("li", action.told) for action in finding.actions)),
            )
        )
    return element("ul", *items)


def _not_tried(summary: Summary) -> Markup:
    shown = []
    for program, refusals in summary.not_tried:
        shown.append(element("p", f"On {program}:"))
        shown.append(element("ul", *(element("li", str(refusal)) for refusal in refusals)))
    return element("div", *shown)


def _pictures(summary: Summary) -> Markup:
    shown = []
    for found in pictures(summary):
        if isinstance(found, Picture):
            shown.append(element("div", found.svg, style="margin:8px 0"))
        else:
            shown.append(element("p", f"no {found.name}: {found.reason}"))
    return element("div", *shown)


def _diff(diff: str) -> Markup:
    lines = []
    for line in diff.splitlines():
        tint = _TINTS.get(line[:1])
        text = line + "\n"
        lines.append(element("span", text, style=tint) if tint else element("span", text))
    return element("pre", *lines, style=_CODE)


def _code(program: str) -> Markup:
    return element("pre", program, style=_CODE)


def _trajectory(summary: Summary) -> Markup:
    depth: dict[int, int] = {}
    rows = []
    for step in summary.trajectory.steps:
        number, parent = step.candidate.number, step.candidate.parent
        depth[number] = 0 if parent is None else depth.get(parent, 0) + 1
        gain = step_speedup(summary, step)
        mark = " (best)" if step is summary.winner else ""
        rows.append(
            (
                f"#{number}",
                "\u2007" * 2 * depth[number] + step.candidate.proposal.title + mark,
                _ending(step),
                f"{ratio(gain)} {summary.source}" if gain else "",
                f"{step.evaluation.reward:+.2f}",
                *(promise(step) or ("", "")),
            )
        )
    head = ["", "edit", "verdict", "speed-up", "reward", "expected", "what came"]
    return _table(head, rows)


def _ending(step: Step) -> str:
    if step.evaluation.duplicate_of is not None:
        return f"same as #{step.evaluation.duplicate_of}"
    verdict = step.evaluation.verdict
    return str(verdict.outcome) if verdict.passed else text.describe(verdict)


def _time(step: Step) -> str:
    measured = step.evaluation.measurement
    return f"{seconds(measured.seconds)} {measured.source}" if measured else "no time"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    header = [element("tr", *(element("th", name, style=_CELL) for name in head))] if head else []
    body = [element("tr", *(element("td", cell, style=_CELL) for cell in row)) for row in rows]
    return element("table", *header, *body, style="border-collapse:collapse;font-size:13px")


def _section(title: str, content: Markup, *, is_open: bool) -> Markup:
    summary = element("summary", title, style="cursor:pointer;font-weight:600;margin:6px 0")
    if is_open:
        return element("details", summary, content, open="open")
    return element("details", summary, content)
