"""A small table as text and as static HTML: rows of cells, a head above them."""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.printable import printable
from optiml_magic.reports.markup import Markup, element

_CELL = "padding:2px 12px 2px 0;text-align:left;vertical-align:top"


def text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of the table, the cells of a column below each other."""
    table = [[printable(cell) for cell in row] for row in (head, *rows)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in table]


def fragment(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """The same as a table of HTML."""
    top = element("tr", *(element("th", name, style=_CELL) for name in head))
    body = (element("tr", *(element("td", cell, style=_CELL) for cell in row)) for row in rows)
    return element("table", top, *body, style="border-collapse:collapse;font-size:13px")
