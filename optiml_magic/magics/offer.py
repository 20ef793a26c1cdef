"""What can be typed at a place: words, and the piece of text that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Word:
    """One completion; ``kind`` is what front ends choose its icon by."""

    text: str
    kind: str = "keyword"


@dataclass(frozen=True)
class Offer:
    """Words for the ``fragment`` that ends at the cursor; there may be none."""

    fragment: str
    words: tuple[Word, ...] = ()

    @classmethod
    def of(cls, fragment: str, words: Iterable[Word]) -> Offer:
        """Those that begin with the fragment, each once, in their order."""
        found: dict[str, Word] = {}
        for word in words:
            if word.text.startswith(fragment):
                found.setdefault(word.text, word)
        return cls(fragment, tuple(found.values()))


@dataclass(frozen=True)
class Session:
    """What a notebook has: its names, and the ``searches`` that run beside its cells."""

    namespace: Mapping[str, Any]
    searches: tuple[str, ...] = ()


def words(texts: Iterable[str], kind: str = "keyword") -> list[Word]:
    """Words of one kind."""
    return [Word(text, kind) for text in texts]
