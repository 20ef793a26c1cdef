"""Span edits on a text, in the UTF-8 byte offsets that tree-sitter gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from optiml_magic.errors import InternalError

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, order=True)
class Edit:
    """Bytes ``[start_byte, end_byte)`` become ``replacement``; an empty span inserts."""

    start_byte: int
    end_byte: int
    replacement: str


def apply(text: str, edits: Iterable[Edit]) -> str:
    """``text`` with all edits made at once; several insertions at one place keep their order.

    Raises InternalError for spans that overlap, leave the text or split a character: such an edit
    is a defect of the rule that made it.
    """
    raw = text.encode()
    pieces: list[bytes] = []
    at = 0
    for edit in sorted(edits, key=lambda e: (e.start_byte, e.end_byte)):
        if not at <= edit.start_byte <= edit.end_byte <= len(raw):
            raise InternalError(f"{edit} overlaps another edit or leaves the text")
        pieces += [raw[at : edit.start_byte], edit.replacement.encode()]
        at = edit.end_byte
    pieces.append(raw[at:])
    try:
        return b"".join(pieces).decode()
    except UnicodeDecodeError:
        raise InternalError("an edit splits a character") from None
