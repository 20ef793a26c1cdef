"""A small table as text and as static HTML: rows of cells, a head above them."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.printable import printable
from optiml_magic.reports.markup import Markup, element

_MOST = 60  # characters of a cell of text
_CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top"


def text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the table, the cells of a column below each other, long ones cut."""
    table = [[_short(printable(cell)) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def _short(cell: str) -> str:
    return cell if len(cell) <= _MOST else f"{cell[: _MOST - 3]}..."


def fragment(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """The same as a table of HTML."""
    top = element("tr", *(element("th", name, style=_CELL) for name in head))
    body = (element("tr", *map(_cell, range(len(row)), row)) for row in rows)
    return element("table", top, *body, style="border-collapse:collapse;font-size:13px")


def _cell(column: int, text: str) -> Markup:
    """What names a row stays on one line."""
    return element("td", text, style=_CELL if column else f"{_CELL};white-space:nowrap")
