"""A run as static HTML: no script, no link, nothing to load.

It is the same in a notebook that nobody trusts, through nbconvert and on GitHub: pictures are
images with their data in them, and styles those of ``blocks.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.model.finding import Finding
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Verdict
from optiml_magic.reports import code, lines, outcome, text, thoughts, tree
from optiml_magic.reports.advice import Advice, merged
from optiml_magic.reports.blocks import (
    BAD,
    GOOD,
    MARKS,
    MONO,
    SEVERITY,
    WARN,
    columns,
    copyable,
    facts,
    pill,
    quiet,
    section,
    table,
)  # fmt: skip
from optiml_magic.reports.figure import AFTER, BEFORE, OTHER, Picture
from optiml_magic.reports.markup import Markup, document, element
from optiml_magic.reports.pictures import pictures
from optiml_magic.reports.quantities import count, number_of, ratio, seconds
from optiml_magic.reports.summary import Summary, promise, step_speedup

_BIG = "font-size:30px;font-weight:700;line-height:1.2;margin:2px 0"
_NAME = "margin:0;padding-top:4px;font-size:14px;font-weight:600"
_VALUE = "flex:0 0 130px"
_BAR = "display:flex;flex-wrap:wrap;align-items:center;margin:3px 0;font-size:13px"
_LABEL = "flex:0 0 110px"
_TRACK = "flex:1 1 160px;max-width:480px;margin-right:10px"
_COLORS = {"before": BEFORE, "after": AFTER, "other": OTHER}
_LIST = "margin:2px 0 2px 0;padding-left:22px"


def page(summaries: Sequence[Summary], title: str) -> str:
    """A whole page of runs for a file."""
    return document(title, *(fragment(summary) for summary in summaries), width="1200px")


def fragment(summary: Summary) -> Markup:
    """The report of one run, to be set into a notebook or a page."""
    root, winner = summary.root, summary.winner
    parts = [*_top(summary)]
    if winner is not root:
        best = code.diff(root.candidate.text, winner.candidate.text)
        whole = section("The best program, to copy", copyable(winner.candidate.text), is_open=False)
        parts.append(section(f"Diff of {summary.baseline} and the best", best, whole))
        parts.append(section("How it got there", _path(summary)))
    if summary.thoughts:
        parts.append(section("Thoughts", table(thoughts.HEAD, thoughts.rows(summary))))
    if winner is not root and winner.evaluation.findings:
        parts.append(section("Findings on the best", _findings(winner.evaluation.findings)))
    if root.evaluation.findings:
        parts.append(
            section(f"Findings on {summary.baseline}", _findings(root.evaluation.findings))
        )
    if root.evaluation.measurement is not None:
        parts.append(section("Pictures", *_pictures(summary)))
    tried = number_of(len(summary.trajectory.steps), "candidate")
    parts.append(section(f"The tree of all {tried}", tree.fragment(summary), is_open=False))
    for program, refusals in summary.not_tried:
        told = element("ul", *(element("li", str(r)) for r in refusals), style=_LIST)
        parts.append(section(f"Not tried on {program}", told, is_open=False))
    named = "".join(f", {summary.run}" for _ in [0] if summary.run)
    details = facts(list(text.facts(summary)))
    parts.append(section(f"Details: {summary.device}{named}", details, is_open=False))
    return element("div", *parts)


def verdict(task: str, found: Verdict, about: Sequence[tuple[str, str]]) -> Markup:
    """What ``check`` says of one kernel; ``about`` stands below it."""
    where = f"line {found.line}: " if found.line else ""
    rows = [("why", where + found.summary), *([("fix", found.fix)] if found.fix else []), *about]
    sign, color = ("\u2713", GOOD) if found.passed else ("\u2717", BAD)
    title = element("span", f"{sign} {found.outcome}", style=f"color:{color}")
    parts = [element("h3", f"{task}: ", title), facts(rows)]
    drawn = text.pictures(found)
    if drawn:
        parts.append(element("pre", "\n".join(drawn), style=f"{MONO};overflow-x:auto"))
    return element("div", *parts)


def profile(
    headline: str, measured: Measurement, found: Sequence[Finding], about: Sequence[tuple[str, str]]
) -> Markup:
    """What ``profile`` says of one kernel: what limits it, and, folded, every metric."""
    limits = ", ".join(f"{b.resource} {seconds(b.seconds)}" for b in measured.bounds[:3])
    rows = [
        ("time", f"{seconds(measured.seconds)} {measured.source} on {measured.chip}"),
        ("limits", limits),
        *about,
    ]
    metrics = [(m.name, count(m.value), m.unit, m.origin) for m in measured.metrics]
    parts = [element("h3", headline), facts(rows)]
    if found:
        parts.append(section("Findings", _findings(found)))
    by_line = lines.cells(measured)
    if by_line:
        parts.append(section("By line", table(list(lines.HEAD), by_line), is_open=False))
    every = table(["metric", "value", "unit", "source"], metrics)
    parts.append(section(f"{len(metrics)} metrics", every, is_open=False))
    return element("div", *parts)


def _top(summary: Summary) -> Iterator[Markup]:
    """The claim, whether it holds, the times as bars, and what limits the winner."""
    found, winner = summary.root.evaluation.verdict, summary.winner
    yield element("h3", summary.task, style=_NAME)
    yield element("div", outcome.claim(summary), style=_BIG)
    if not found.passed:
        yield element("p", pill("\u2717 not verified", BAD), text.describe(found))
        return
    pills = [pill("\u2713 verified", GOOD), pill(summary.source)]
    if narrowed := text.only(summary):
        pills.append(pill(narrowed, WARN))
    yield element("div", *pills, quiet(outcome.bounds(summary)), style="margin:4px 0 8px 0")
    shown = outcome.bars(summary)
    longest = max((bar.seconds for bar in shown), default=1.0)
    for bar in shown:
        share = 100 * bar.seconds / longest
        inner = f"width:{max(share, 0.5):.1f}%;height:14px;border-radius:2px"
        color = f";background-color:{_COLORS[bar.role]}"
        track = element("div", element("div", style=inner + color), style=_TRACK)
        name = element("div", bar.name, style=_LABEL)
        yield element("div", name, track, element("div", bar.told, style=_VALUE), style=_BAR)
    if told := outcome.limit(winner):
        yield element("p", f"Now {told}." if winner is not summary.root else f"It is {told}.")


def _path(summary: Summary) -> Markup:
    """The steps to the winner, each with its gain over the one before it."""
    rows, before = [], None
    for step in summary.trajectory.lineage(summary.winner):
        measured, gain = step.evaluation.measurement, step_speedup(summary, step)
        own = ratio(before / measured.seconds) if before and measured else ""
        before = measured.seconds if measured else None
        told = promise(step)
        edit = element("div", tree.mark(summary, step), f" {step.candidate.proposal.title}")
        why = [quiet(f"expected {told[0]}; {told[1]}", "div")] if told else []
        rows.append(
            (
                f"#{step.candidate.number}",
                element("div", edit, *why),
                own,
                ratio(gain) if gain else "",
                seconds(measured.seconds) if measured else "",
            )
        )
    return table(["", "edit", "gain", "so far", f"time, {summary.source}"], rows)


def _findings(found: Sequence[Finding]) -> Markup:
    return element("div", *(_advice(advice) for advice in merged(found)))


def _advice(advice: Advice) -> Markup:
    """What was found, once for all that ask for the same; then what to try."""
    color = f"color:{SEVERITY[advice.severity]};font-weight:600"
    title = f"{MARKS[advice.severity]} {advice.severity} "
    first, *more = advice.causes
    return element(
        "div",
        element("div", element("span", title, style=color), first),
        *(element("div", cause, style="padding-left:22px") for cause in more),
        element("ul", *(element("li", action.told) for action in advice.actions), style=_LIST),
        quiet(f"{advice.gain} ({advice.tools})", "div"),
        style="margin:6px 0 12px 0",
    )


def _pictures(summary: Summary) -> Iterator[Markup]:
    found = pictures(summary)
    yield columns([one.image for one in found if isinstance(one, Picture)])
    for one in found:
        if not isinstance(one, Picture):
            yield quiet(f"no {one.name}: {one.reason}", "p")
