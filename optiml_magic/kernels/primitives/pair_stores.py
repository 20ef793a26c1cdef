"""What items taken in pairs leave in rows of local arrays: numbers of halves put into words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.pair_items import Items
from optiml_magic.kernels.primitives.pair_places import Stored
from optiml_magic.kernels.primitives.pair_values import Value
from optiml_magic.kernels.types import CType

WORD = 4  # bytes
_Byte = tuple[str, int]  # of which word, and which of its bytes


@dataclass(frozen=True)
class Row:
    """The numbers of an item that follow each other in a row, as ``places`` say where.

    Of an array of vectors one element has so many ``lanes`` of them.
    """

    places: tuple[Stored, ...]
    numbers: tuple[Value, ...]
    kind: CType
    lanes: int

    @property
    def together(self) -> int:
        """How many items fill whole words."""
        return 2 if 2 * len(self.places) * (self.kind.size or 0) % WORD == 0 else 4

    def stored(self, item: str, halves: Sequence[Sequence[str]], ends: tuple[int, int]) -> str:
        """The lines that store as many items as fill words, of these halves for each two of them.

        A number ends at one of the bytes ``ends`` of its word.
        """
        size = self.kind.size or 0
        numbers = ((word, end) for pair in halves for end in ends for word in pair)
        given = [(word, end - size + 1 + at) for word, end in numbers for at in range(size)]
        words = [given[at : at + WORD] for at in range(0, len(given), WORD)]
        first, step = self.places[0].at // self.lanes, self.places[0].step // self.lanes
        index = (item if step == 1 else f"{item} * {step}") + (f" + {first}" if first else "")
        place = f"&{self.places[0].variable.name}{self.places[0].row}[{index}]"
        return "\n".join(
            f"reinterpret_cast<unsigned*>({place})[{at}] = {_gathered(word, ends)};"
            for at, word in enumerate(words)
        )


def rows(items: Items, divided: Callable[[int], bool]) -> list[Row]:
    """What items store, whose number is ``divided`` by some."""
    by_row: dict[tuple[object, str], list[Stored]] = {}
    for place in items.stored:
        by_row.setdefault((place.variable, place.row), []).append(place)
    found = [_row(items, sorted(places, key=lambda p: p.at)) for places in by_row.values()]
    for row in found:
        begins = row.places[0].at * (row.kind.size or 0)
        if begins % WORD or not divided(row.together):
            raise NotLegal("what items store does not fill words")
    return found


def _row(items: Items, places: Sequence[Stored]) -> Row:
    """All numbers between one item and the next, so that none is stored by several items."""
    first, step, variable = places[0].at, places[0].step, places[0].variable
    lanes = items.lanes(variable)
    filled = [(place.at, place.step) for place in places]
    if filled != [(at, step) for at in range(first, first + step)] or first % lanes:
        raise NotLegal("items do not store all numbers of a row, each one once")
    numbers = tuple(items.stored[place] for place in places)
    return Row(tuple(places), numbers, items.kind(variable).lane, lanes)


def _gathered(given: Sequence[_Byte], ends: tuple[int, int]) -> str:
    """A word of these bytes; where they are of more than two words, some of these are mixed first.

    Numbers that follow each other do so for both items, so that both ask for the same mixture.
    """
    words = [*dict.fromkeys(word for word, _ in given)]
    mixed = dict[_Byte, _Byte]()
    if len(words) > 2:
        for pair in (words[:2], words[2:]):
            if len(pair) == 2:
                made = _permuted(pair, [(word, end) for end in ends for word in pair])
                mixed |= {(w, e): (made, 2 * n + m) for n, e in enumerate(ends)
                          for m, w in enumerate(pair)}  # fmt: skip
    given = [mixed.get(byte, byte) for byte in given]
    words = [*dict.fromkeys(word for word, _ in given)]
    return _permuted(words, given)


def _permuted(words: Sequence[str], given: Sequence[_Byte]) -> str:
    """A word of these bytes of one word or two."""
    first, second = (*words, "0")[:2]
    if [*given] == [(first, at) for at in range(WORD)]:
        return first
    selected = [at if word == first else at + WORD for word, at in given]
    chosen = sum(at << 4 * place for place, at in enumerate(selected))
    return f"__byte_perm({first}, {second}, {chosen:#06x})"
