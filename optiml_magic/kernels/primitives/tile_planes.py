"""Rounds of a product that are planes of bits: those of a word are combined before they count.

A tile has whole words, as many as its rounds hold, so that what differs in a word is known within
the tile. What is behind the last word is 0 on both sides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node
from optiml_magic.kernels.expressions import Binary, Call
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.operands import Contraction
from optiml_magic.kernels.primitives.tiles import Tiles

_UNROLLED = 4  # planes at a time, of small numbers all: ours


@dataclass(frozen=True)
class Words:
    """``planes`` rounds in turn are of one word, an expression that is above 0.

    They are ``most`` at most.
    """

    planes: str
    most: int


class TilePlanes:
    """The rounds of a tile by words. Raises NotLegal where a round does more than to count."""

    def __init__(
        self, parts: Contraction, tiles: Tiles, sums: Mapping[str, str], words: Words
    ) -> None:
        layout = tiles.layout
        self.parts, self.layout, self.words = parts, layout, words
        if any(one.along == parts.axis.name and one.width > 1 for one in tiles.brought):
            raise NotLegal("a tile of whole words may begin within a vector", parts.loop.line)
        fresh = parts.kernel.fresh
        self.each, self.step = fresh("planes_each"), fresh("tile_rounds")
        self.word, self.differ = fresh("word"), fresh("differ")
        (reduction,) = parts.reductions
        self.sum = layout.sum_of(reduction.place, sums[reduction.place])
        match reduction.values:
            case (Call(function="__popc", arguments=(Binary(op="^") as compared,)),):
                self.compared = compared
            case _:
                raise NotLegal("a round does more than to count bits", parts.loop.line)

    def declared(self) -> list[str]:
        """How many rounds a word has, and how many a tile has of whole words."""
        return [
            f"const int {self.each} = {self.words.planes};",
            f"const int {self.step} = {self.layout.deep} / {self.each} * {self.each};",
        ]

    def rounds(self, now: Sequence[str], swaps: Mapping[Node, Node | None]) -> str:
        """All rounds of a tile; ``now`` are the lines that take a round's elements."""
        layout, deep = self.layout, self.layout.round
        m, n = layout.sides.values()
        own = f"{self.differ}[{m.at}][{n.at}]"
        compared = self.parts.kernel.spelled(self.compared, swaps)
        taken = "\n".join(now)
        return f"""\
for (int {self.word} = 0; {self.word} < {self.step}; {self.word} += {self.each}) {{
unsigned int {self.differ}[{m.own}][{n.own}] = {{}};
#pragma unroll {_UNROLLED}
for (int {deep} = {self.word}; {deep} < {self.word} + {self.each}; ++{deep}) {{
{taken}
{layout.each(f"{own} |= {compared};")}
}}
{layout.each(f"{self.sum} += __popc({own});")}
}}"""
