"""What a result's attributes look like when a cell ends with one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from optiml_magic.model.evaluation import Trajectory
from optiml_magic.printable import printable
from optiml_magic.reports import columns, table, tree
from optiml_magic.reports.markup import Markup, element
from optiml_magic.reports.quantities import ratio, seconds
from optiml_magic.reports.summary import Summary

_PRE = "font-family:monospace;font-size:12px;line-height:1.35;white-space:pre;overflow-x:auto"
_TINTS = {
    "+": "background-color:rgba(46,160,67,0.18)",
    "-": "background-color:rgba(248,81,73,0.18)",
    "@": "color:#7d7d7d",
}
_SAME = "no difference: the input kernel is the winner"


class Tree(Mapping[int, tuple[int, ...]]):
    """The numbers of each candidate's children, by its number; shown as lines with speed-ups."""

    def __init__(self, summary: Summary) -> None:
        self._children = dict(table.children(summary.trajectory))
        self._lines = tuple(tree.lines(summary))

    def __getitem__(self, number: int) -> tuple[int, ...]:
        return self._children[number]

    def __iter__(self) -> Iterator[int]:
        return iter(self._children)

    def __len__(self) -> int:
        return len(self._children)

    def __repr__(self) -> str:
        return "\n".join(self._lines)

    def _repr_html_(self) -> str:
        return code(repr(self))


class Diff(str):
    """A unified diff: a str that is shown as its lines, in a notebook with colours."""

    __slots__ = ()

    def __repr__(self) -> str:
        return printable(self) or _SAME

    def markup(self) -> Markup:
        """Its lines, those that came and those that went in colours of their own."""
        spans = (_line(line + "\n") for line in (str(self) or _SAME).splitlines())
        return element("pre", *spans, style=_PRE)

    def _repr_html_(self) -> str:
        return self.markup()


def _line(line: str) -> Markup:
    tint = _TINTS.get(line[:1])
    return element("span", line, style=tint) if tint else element("span", line)


def code(text: str) -> Markup:
    """Text as it stands, each line on its own."""
    return element("pre", text, style=_PRE)


def steps(trajectory: Trajectory) -> str:
    """Every candidate in a row of a table."""
    before = trajectory.root.evaluation.measurement
    rows = []
    for step in trajectory.steps:
        measured, parent = step.evaluation.measurement, step.candidate.parent
        gain = ratio(before.seconds / measured.seconds) if before and measured else ""
        verdict = str(step.evaluation.verdict.outcome)
        if step.evaluation.duplicate_of is not None:
            verdict = f"same as #{step.evaluation.duplicate_of}"
        rows.append(
            (
                f"#{step.candidate.number}",
                "" if parent is None else f"#{parent}",
                step.candidate.proposal.title,
                verdict,
                f"{seconds(measured.seconds)} {measured.source}" if measured else "",
                gain,
            )
        )
    head = ("", "edit of", "edit", "verdict", "time", "speed-up")
    return element("div", element("p", repr(trajectory)), columns.fragment(head, rows))
