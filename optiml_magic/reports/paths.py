"""The paths that won on earlier kernels, as a table: what a search begins with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from optiml_magic.model.experience import Entry
from optiml_magic.printable import printable
from optiml_magic.reports.markup import Markup, element
from optiml_magic.reports.quantities import number_of, ratio

_HEAD = ("edits", "kernels", "best gain", "chip", "times", "last")
_MEANING = "best gain: times faster than the input kernel, of the kernels that this path won on"


def text(own: Sequence[Entry], shipped: Sequence[Entry]) -> str:
    """How many entries there are, and a line for each path."""
    rows = _rows([*own, *shipped])
    if not rows:
        return printable(_counted(own, shipped))
    table = [_HEAD, *rows]
    widths = [max(len(row[at]) for row in table) for at in range(len(_HEAD))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in table
    )
    return printable(
        "\n".join([f"{_counted(own, shipped)}:", *(f"  {line}" for line in lines), _MEANING])
    )


def fragment(own: Sequence[Entry], shipped: Sequence[Entry]) -> Markup:
    """The same as static HTML."""
    rows = _rows([*own, *shipped])
    counted = element("h4", _counted(own, shipped))
    if not rows:
        return counted
    cells = [[element("td", cell) for cell in row] for row in rows]
    head = element("tr", *(element("th", word) for word in _HEAD))
    body = [element("tr", *row) for row in cells]
    meaning = element("p", _MEANING, style="font-size:12px")
    return element("div", counted, element("table", head, *body), meaning)


def _counted(own: Sequence[Entry], shipped: Sequence[Entry]) -> str:
    runs, others = (number_of(len(entries), "run") for entries in (own, shipped))
    return f"Paths that won: of {runs} here, and of {others} that came with the package"


def _rows(entries: Sequence[Entry]) -> list[tuple[str, ...]]:
    """The paths by the rules of their edits, those that won on most kernels first."""
    groups: defaultdict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.moves:
            groups[", then ".join(move.split()[0] for move in entry.path)].append(entry)
    found = []
    for rules, mine in groups.items():
        best = max(mine, key=lambda entry: entry.gain)
        programs = {entry.evidence.program for entry in mine}
        last = max(entry.evidence.origin.date for entry in mine)
        evidence = best.evidence
        gain = ratio(best.gain)
        told = (rules, str(len(programs)), gain, evidence.chip, evidence.source, last)
        found.append((len(programs), best.gain, told))
    return [told for _, _, told in sorted(found, key=lambda row: row[:2], reverse=True)]
