"""Sums of a product that belong to its rows or its columns alone, each made once for a block.

A row of a tile has many threads. Where each of them added up the row's own sum, such as that of its
squares, that would be another operation for each of their few outputs: so each sum has one thread,
and all others take it from shared memory when it is complete.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, text
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.operands import COLUMN, ROW
from optiml_magic.kernels.primitives.tile_layout import Layout
from optiml_magic.kernels.primitives.tile_sums import adding, unasked
from optiml_magic.kernels.primitives.tiles import Tiles
from optiml_magic.kernels.primitives.zeros import nothing
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Block, Declare, Statement, expressions, walk


class Margins:
    """The sums of one side of a tile; ``sums`` are what they are called where threads use them."""

    def __init__(self, layout: Layout, tiles: Tiles, sums: dict[str, str]) -> None:
        self.parts, self.layout, self.tiles, self.sums = layout.parts, layout, tiles, sums
        fresh = self.parts.kernel.fresh
        self.apart = {
            side: [r for r in self.parts.reductions if r.place in layout.margins
                   and layout.sums[r.place] == side]
            for side in (ROW, COLUMN)
        }  # fmt: skip
        self.turn, self.own = fresh("part"), fresh("of_tile")
        self.part = {p: fresh(f"{p}_part") for p in layout.margins}
        self.whole = {p: fresh(f"{p}_whole") for p in layout.margins}

    @property
    def statements(self) -> set[Statement]:
        """Those that add to these sums, which the threads of the outputs need not do."""
        variables = self.parts.variables()
        return {s for p in self.layout.margins for s in adding(self.parts, variables[p])}

    def declared(self) -> Iterator[str]:
        for side, reduction in self._each():
            place, kind = reduction.place, reduction.type.name
            yield f"__shared__ {kind} {self.whole[place]}[{self.layout.sides[side].whole}];"
            yield f"{kind} {self.part[place]}[{self._turns(side)}];"
            begun = f"{self.part[place]}[{self.turn}] = {combine.nothing(reduction)};"
            yield f"#pragma unroll\n{self._over(side)}{begun}"

    def rounds(self, each: str) -> Iterator[str]:
        """What ``each`` round of a tile adds, by the threads that have a row or a column of it."""
        for side, reductions in self.apart.items():
            if reductions:
                inner = self._body(side, {r.place for r in reductions})
                yield f"#pragma unroll\n{self._over(side)}{{\n{self._there(side)}{{\n{each}"
                yield f"{inner}\n}}\n}}\n}}"

    def finished(self) -> Iterator[str]:
        """Gives each thread the sums of its rows and columns."""
        every = [*self._each()]
        for side, reduction in every:
            part, whole = self.part[reduction.place], self.whole[reduction.place]
            kept = f"{whole}[{self.own}] = {part}[{self.turn}];"
            yield f"#pragma unroll\n{self._over(side)}{{\n{self._there(side)}{kept}\n}}"
        if every:
            yield "__syncthreads();"
        for side, reduction in every:
            of, sums = self.layout.sides[side], self.sums[reduction.place]
            found = f"{self.whole[reduction.place]}[{self.layout.owned(of, of.at)}]"
            yield f"{reduction.type.name} {sums}[{of.own}];"
            yield f"#pragma unroll\nfor (int {of.at} = 0; {of.at} < {of.own}; ++{of.at})"
            yield f"{sums}[{of.at}] = {found};"

    def shared(self) -> str:
        """The bytes that the sums take, over tuned names."""
        sides = self.layout.sides
        return "".join(f" + {r.type.size or 0} * {sides[s].whole}" for s, r in self._each())

    def _each(self) -> Iterator[tuple[str, Reduction]]:
        return ((side, r) for side, reductions in self.apart.items() for r in reductions)

    def _turns(self, side: str) -> str:
        whole, threads = self.layout.sides[side].whole, self.layout.threads
        return f"({whole} + {threads} - 1) / {threads}"

    def _over(self, side: str) -> str:
        return f"for (int {self.turn} = 0; {self.turn} < {self._turns(side)}; ++{self.turn}) "

    def _there(self, side: str) -> str:
        # The last threads have columns where the first have rows.
        threads = self.layout.threads
        first = "threadIdx.x" if side == ROW else f"{threads} - 1 - threadIdx.x"
        whole = self.layout.sides[side].whole
        place = f"const int {self.own} = {first} + {self.turn} * {threads};"
        return f"{place}\nif ({self.own} < {whole}) "

    def _body(self, side: str, places: set[str]) -> str:
        """What the loop does for these sums alone, with a row or a column of the tile."""
        parts, variables = self.parts, self.parts.variables()
        own = {s for p in places for s in adding(parts, variables[p])}
        swaps: dict[Node, Node | None] = {}
        for operand in (*parts.operands, *parts.others):
            # What is of the other side is declared beside it at most.
            mine = operand.deep and operand.side == side
            found = self.tiles.taken_at(operand, self.own) if mine else nothing(operand.kind)
            swaps |= {access.own: text(found) for access in operand.accesses}
        swaps |= {
            s: None for s in walk(parts.loop.body)
            if not isinstance(s, Declare | Block) and not own & {*walk(s)}
        }  # fmt: skip
        for statement in own:
            for expr in expressions(statement):
                if isinstance(expr, Name) and expr.name in places and (
                    expr.variable is variables[expr.name]
                ):  # fmt: skip
                    swaps[expr] = text(f"{self.part[expr.name]}[{self.turn}]")
        swaps |= dict.fromkeys(unasked(parts.loop.body, swaps))
        shown = parts.kernel.show(parts.loop.body, swaps).strip()
        return shown if shown.startswith("{") else f"{{\n{shown}\n}}"
