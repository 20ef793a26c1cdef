"""What earlier runs learned, as tables: which tools, actions and rules paid off, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from optiml_magic.model.hit_rates import Kind, Tally
from optiml_magic.printable import printable
from optiml_magic.reports.markup import Markup, element
from optiml_magic.reports.quantities import ratio

HEAD = (
    "name", "times", "chips", "class", "proposed", "applied", "confirmed", "refuted",
    "not measurable", "gained 10 %", "mean gain", "hit rate",
)  # fmt: skip
_TITLES: dict[Kind, str] = {
    "tool": "Tools: findings whose advice was tried",
    "action": "Actions: a tool and the rule that did what it advised",
    "rule": "Rules and models: all of their edits",
}
_NOTHING = "no experience yet: every optimize adds to it"
_MEANING = (
    "tools and actions count edits that changed what a finding is about; confirmed: the metric "
    "that the edit named moved the promised way, beyond noise, and the time is no longer; gained: "
    "at least 10 % less time than its parent, verified; hit rate: smoothed, what ranks the next "
    "edits"
)
_CELL = "padding:2px 10px 2px 0;text-align:{};vertical-align:top"


def text(tallies: Sequence[Tally]) -> str:
    """Plain tables, best rates first."""
    if not tallies:
        return _NOTHING
    parts = []
    for kind, title in _TITLES.items():
        rows = [HEAD, *_rows(tallies, kind)]
        if len(rows) > 1:
            widths = [max(len(row[at]) for row in rows) for at in range(len(HEAD))]
            lines = ["  ".join(_aligned(row, widths)).rstrip() for row in rows]
            parts.append("\n".join([f"{title}:", *(f"  {line}" for line in lines)]))
    return printable("\n\n".join([*parts, _MEANING]))


def fragment(tallies: Sequence[Tally]) -> Markup:
    """The same as static HTML."""
    if not tallies:
        return element("p", _NOTHING)
    parts: list[Markup] = []
    for kind, title in _TITLES.items():
        rows = _rows(tallies, kind)
        if rows:
            parts += [element("h4", title), _table(rows)]
    return element("div", *parts, element("p", _MEANING, style="font-size:12px"))


def rows(tallies: Sequence[Tally]) -> list[dict[str, Any]]:
    """One flat row for each tally, for JSON."""
    return [{**asdict(t), "mean_gain": t.mean_gain, "hit_rate": t.rate} for t in tallies]


def _rows(tallies: Sequence[Tally], kind: Kind) -> list[tuple[str, ...]]:
    mine = sorted((t for t in tallies if t.kind == kind), key=lambda t: (-t.rate, t.name))
    return [_cells(tally) for tally in mine]


def _cells(tally: Tally) -> tuple[str, ...]:
    counts = (
        tally.proposed, tally.applied, tally.confirmed, tally.refuted, tally.not_measurable,
        tally.gained,
    )  # fmt: skip
    gain = ratio(tally.mean_gain) if tally.mean_gain is not None else "-"
    where = (tally.name, tally.source, tally.family, tally.roofline or "-")
    return (*where, *map(str, counts), gain, f"{100 * tally.rate:.0f} %")


def _aligned(row: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.ljust(width) if at < 4 else cell.rjust(width)
        for at, (cell, width) in enumerate(zip(row, widths, strict=True))
    ]


def _table(rows: Sequence[Sequence[str]]) -> Markup:
    def line(tag: str, cells: Sequence[str]) -> Markup:
        styled = [
            element(tag, cell, style=_CELL.format("left" if at < 4 else "right"))
            for at, cell in enumerate(cells)
        ]
        return element("tr", *styled)

    body = [line("th", HEAD), *(line("td", row) for row in rows)]
    return element("table", *body, style="border-collapse:collapse;font-size:13px")
