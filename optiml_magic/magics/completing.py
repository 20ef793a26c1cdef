"""Completion and inspection of a cell: whether a place in it is ours, and which of two kinds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from optiml_magic.magics import in_body, on_line
from optiml_magic.magics.offer import Offer, Session

_CELL = re.compile(r"\s*%%optiml(?=\s)")
_LINE = re.compile(r"\s*(?:[\w., ]+=\s*)?%optiml(?=\s)")
_PROSE = "synthesize"


@dataclass(frozen=True)
class _Place:
    """``text`` is the line behind the magic, or the body of a cell, and ``offset`` is in it."""

    text: str
    offset: int
    body: str | None
    in_body: bool = False
    verb: str = ""


def complete(cell: str, offset: int, session: Session) -> Offer | None:
    """What may be typed at an offset of a cell; None where it is not on a magic of ours."""
    place = _find(cell, offset)
    if place is None:
        return None
    if not place.in_body:
        return on_line.complete(place.text[: place.offset], session, place.body)
    return Offer("") if place.verb == _PROSE else in_body.complete(place.text, place.offset)


def about(cell: str, offset: int, session: Session) -> str | None:
    """One line on what is at an offset, empty where it is not known; None where it is not ours."""
    place = _find(cell, offset)
    if place is None:
        return None
    if not place.in_body:
        return on_line.about(place.text, place.offset)
    if place.verb == _PROSE:
        return ""
    return in_body.about(place.text, place.offset, session.namespace)


def _find(cell: str, offset: int) -> _Place | None:
    whole = _CELL.match(cell)
    start = whole.end() if whole else cell.rfind("\n", 0, offset) + 1
    if whole is None:
        line = _LINE.match(cell, start)
        if line is None:
            return None
        start = line.end()
    if offset <= start:
        return None
    end = cell.find("\n", start)
    line_end, body = (end, cell[end + 1 :]) if end >= 0 else (len(cell), "")
    text = cell[start:line_end]
    if offset <= line_end:
        return _Place(text, offset - start, body if whole else None)
    verb = (text.split() or [""])[0]
    return _Place(body, offset - line_end - 1, body, in_body=True, verb=verb)
