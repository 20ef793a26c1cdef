"""Edits of one kernel, collected before they are made: spans, and how far lines move in or out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from optiml_magic.proposers.rewrites.layout import fresh, indentation, line_end, line_start, unit
from optiml_magic.source.edits import Edit

if TYPE_CHECKING:
    from tree_sitter import Node

    from optiml_magic.proposers.rewrites.kernel import Kernel


class NotCertainError(Exception):
    """A precondition of the rule does not certainly hold; the rule proposes nothing."""


@dataclass
class Surgery:
    """``shift`` has levels of indentation per line (0-based); ``taken`` are names made so far."""

    kernel: Kernel
    spans: list[Edit] = field(default_factory=list)
    shift: dict[int, int] = field(default_factory=dict)
    taken: list[str] = field(default_factory=list)

    def fresh(self, wanted: str) -> str:
        """A name that neither the program nor this surgery uses."""
        text = self.kernel.syntax.text.decode()
        self.taken.append(fresh(wanted, " ".join([text, *self.taken])))
        return self.taken[-1]

    def replace(self, start: int, end: int, text: str) -> None:
        self.spans.append(Edit(start, end, text))

    def move(self, first: int, last: int, levels: int) -> None:
        """Shifts the lines ``first`` to ``last``, both included."""
        for line in range(first, last + 1):
            self.shift[line] = self.shift.get(line, 0) + levels

    def blanks(self, node: Node) -> str:
        """The indentation that the line of ``node`` will have."""
        present = indentation(self.kernel, node.start_byte)
        return self._shifted(present, self.shift.get(int(node.start_point[0]), 0))

    def wrap(self, first: Node, last: Node, head: str) -> None:
        """Puts whole statements into the braces of ``head``, on lines of their own."""
        text = self.kernel.syntax.text
        start = line_start(self.kernel, first.start_byte)
        stop = line_end(self.kernel, last.end_byte)
        before, after = text[start : first.start_byte], text[last.end_byte : stop].strip()
        if before.strip() or (after and not after.startswith(b"//")):
            raise NotCertainError("statements share a line")
        blanks = self.blanks(first)
        self.replace(start, start, f"{blanks}{head} {{\n")
        self.replace(stop, stop, f"\n{blanks}}}")
        self.move(int(first.start_point[0]), int(last.end_point[0]), 1)

    def edits(self) -> list[Edit]:
        """All edits, those of whole lines included."""
        text = self.kernel.syntax.text
        starts = [0]
        for at, byte in enumerate(text):
            if byte == 0x0A:
                starts.append(at + 1)
        moved = []
        for line, levels in self.shift.items():
            start = starts[line]
            present = indentation(self.kernel, start)
            inside = any(s.start_byte < start < s.end_byte for s in self.spans)
            whole = any(s.start_byte == start < s.end_byte for s in self.spans)
            if levels and not inside and not whole and text[start:].lstrip(b" \t")[:1] != b"\n":
                wanted = self._shifted(present, levels)
                moved.append(Edit(start, start + len(present), wanted))
        # Insertions at a line's start come before its new indentation.
        return sorted(self.spans + moved, key=lambda e: (e.start_byte, e.end_byte))

    def _shifted(self, present: str, levels: int) -> str:
        one = unit(self.kernel)
        if levels >= 0:
            return present + one * levels
        for _ in range(-levels):
            present = present.removesuffix(one)
        return present
