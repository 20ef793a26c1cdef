"""The text of a CUDA cell to the text that is read: macros expanded, conditionals resolved.

What cannot be done as a compiler would do it is left as it stands, and a map leads back from every
span to the text that the user wrote. All offsets count bytes of UTF-8.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Literal, NamedTuple

from optiml_magic.kernels.preprocessor.conditionals import Change, Span, passages
from optiml_magic.kernels.preprocessor.conditions import Names
from optiml_magic.kernels.preprocessor.expansion import Expander
from optiml_magic.kernels.preprocessor.lines import lines, without_literals
from optiml_magic.kernels.preprocessor.macros import Table, define
from optiml_magic.kernels.preprocessor.tokens import IN_NAME, glues
from optiml_magic.kernels.preprocessor.uses import uses

Kind = Literal["plain", "blank", "macro"]
_SIGN = re.compile(
    rf"(?:\#|%:)[ \t]*+(?:(?P<word>\w+)[ \t]*+(?P<name>{IN_NAME}*+)|[\s\\/])", re.ASCII
)
_BEFORE = 40  # characters that tell whether a number ends there
_NOT_NEWLINE = re.compile(r"[^\r\n]")
_CONDITIONAL = frozenset({"if", "ifdef", "ifndef", "undef"})
_LEAST_WORK = 40_000  # tokens that the uses of a short text may expand to in all


@dataclass(frozen=True)
class Piece:
    """``text[start:end]`` and the span of the original that it comes from.

    A ``plain`` piece stands in the original as it is, a ``blank`` one has its length but was a
    preprocessor line or a branch that is not taken, a ``macro`` is what one use expanded to.
    """

    start: int
    end: int
    origin_start: int
    origin_end: int
    kind: Kind = "plain"


class Edit(NamedTuple):
    """What replaces a span of the original."""

    start: int
    end: int
    text: str
    kind: Kind


@dataclass(frozen=True)
class Preprocessed:
    """``pieces`` cover ``text`` in order; ``undecided`` are conditionals left with all branches."""

    text: bytes
    pieces: tuple[Piece, ...]
    undecided: tuple[Span, ...] = ()

    def origin(self, start: int, end: int) -> Span:
        """The span of the original behind ``text[start:end]``: uses of macros as a whole."""
        first = self._piece(start)
        begin = first.origin_start
        if first.kind != "macro":
            begin += start - first.start
        if end <= start:
            inside = first.kind == "macro" and first.start < start < first.end
            return begin, first.origin_end if inside else begin
        last = self._piece(end - 1)
        return begin, last.origin_end - (0 if last.kind == "macro" else last.end - end)

    def plain(self, start: int, end: int) -> bool:
        """Whether ``text[start:end]`` stands in the original so, byte for byte."""
        piece = self._piece(start)
        return end <= start or (piece.kind == "plain" and end <= piece.end)

    def whole(self, start: int, end: int) -> bool:
        """Whether ``text[start:end]`` has no part of a macro's use but its parentheses' inside."""
        if end <= start:
            return True
        first, last = self._piece(start), self._piece(end - 1)
        before = self.text[first.start : start] if first.kind == "macro" else b""
        after = self.text[end : last.end] if last.kind == "macro" else b""
        open_, close = (b"".join(part.split()) for part in (before, after))
        return not open_.strip(b"(") and not close.strip(b")") and len(open_) == len(close)

    def _piece(self, at: int) -> Piece:
        return self.pieces[max(0, bisect_right(self.pieces, at, key=attrgetter("start")) - 1)]


def preprocess(
    text: str,
    defines: Mapping[str, int | str] | None = None,
    *,
    arch: int | None = None,
    foreign: bool = False,
) -> Preprocessed:
    """The text that is read; ``defines`` are macros from outside of it, as of ``-D``.

    ``arch`` is the compute capability that is compiled for, 90 for 9.0. Where the text is
    ``foreign``, any other macro may be defined outside as well. Any text gives a result.
    """
    data = text.encode("utf-8", "surrogatepass")
    raw = data.decode("latin-1")
    outside = dict(_defined(name, value) for name, value in (defines or {}).items())
    if not _has_work(raw, outside):
        return Preprocessed(data, (Piece(0, len(data), 0, len(data)),))
    clean = without_literals(raw)
    found = lines(raw, clean)
    written = {line.changed for line in found if line.word == "define"}
    expander = Expander(dict(outside), _LEAST_WORK + len(raw))
    passed = list(passages(found, Names(expander, written, arch, foreign), len(raw)))
    expander.table = outside  # the uses are gone through from the start again
    edits = [Edit(*use, "macro") for use in uses(raw, clean, passed, expander)]
    for each in passed:
        if each.kind == "blank":
            blank = _NOT_NEWLINE.sub(" ", raw[each.start : each.end])
            edits.append(Edit(each.start, each.end, blank, "blank"))
    undecided = [(each.start, each.end) for each in passed if each.kind == "undecided"]
    return _assembled(raw, sorted(edits), undecided)


def _defined(name: str, value: int | str) -> Change:
    """A macro from outside; a name may have parameters, as in ``-D'f(x)=x'``."""
    spelled = f"{name} {int(value) if isinstance(value, int) else value}".replace("\n", " ")
    return define(spelled.encode("utf-8", "surrogatepass").decode("latin-1"))


def _has_work(raw: str, defines: Table) -> bool:
    """Whether anything could change; a quick look that may say yes where nothing does."""
    if any(name in raw for name in defines):
        return True
    for sign in _SIGN.finditer(raw):
        word = sign["word"]
        if word is None or word in _CONDITIONAL:
            return True
        if word == "define" and (not sign["name"] or raw.count(sign["name"]) > 1):
            return True
    return False


def _assembled(raw: str, edits: Sequence[Edit], undecided: Sequence[Span]) -> Preprocessed:
    """The original with the edits made."""
    parts: list[str] = []
    pieces: list[Piece] = []
    at = length = 0
    for edit in (*edits, Edit(len(raw), len(raw), "", "plain")):
        if at < edit.start:
            parts.append(raw[at : edit.start])
            pieces.append(Piece(length, length + edit.start - at, at, edit.start))
            length += edit.start - at
        text = edit.text
        if edit.kind == "macro":
            before = " " if parts and glues(parts[-1][-_BEFORE:], text) else ""
            following = raw[edit.end : edit.end + 2]
            text = before + text + (" " if following and glues(text, following) else "")
        if text:
            parts.append(text)
            pieces.append(Piece(length, length + len(text), edit.start, edit.end, edit.kind))
            length += len(text)
        at = edit.end
    spans = []
    for start, end in undecided:  # each lies within one plain piece
        piece = pieces[bisect_right(pieces, start, key=attrgetter("origin_start")) - 1]
        shift = piece.start - piece.origin_start
        spans.append((start + shift, end + shift))
    return Preprocessed("".join(parts).encode("latin-1"), tuple(pieces), tuple(spans))
