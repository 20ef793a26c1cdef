"""Tiles of a triangle, numbered along one axis, so that no block comes for one without an output.

Tiles that are not square are numbered by the squares of as many of them as lie in one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.tile_layout import Layout, Tile
from optiml_magic.kernels.symbols import Condition
from optiml_magic.source.expressions import Expression, parse_expression

_MOST_LINES = 1 << 16  # of tiles that are counted one by one


@dataclass(frozen=True)
class Triangle:
    """Outputs on and below the diagonal, or above it where ``down`` is the columns' side."""

    down: str
    layout: Layout

    def opening(self) -> str:
        """Where the tile of a block is. The root is off by less than one, which is put right."""
        m, n = self.layout.sides[ROW], self.layout.sides[COLUMN]
        down, across = (m, n) if self.down == ROW else (n, m)
        fresh = self.layout.old.fresh
        square, tile, part = fresh("SQUARE"), fresh("tile"), fresh("tile_part")
        root, line = fresh("tile_root"), fresh("tile_line")
        each = f"({square} / {m.whole} * ({square} / {n.whole}))"
        place = {
            down: line, across: f"({tile} - (int)({line} * ({line} + 1LL) / 2))",
        }  # fmt: skip
        inside = {
            m: f"{part} % ({square} / {m.whole})", n: f"{part} / ({square} / {m.whole})",
        }  # fmt: skip
        firsts = "\n".join(
            f"const int {side.first} = {place[side]} * {square} + {inside[side]} * {side.whole};"
            for side in (m, n)
        )
        return f"""\
constexpr int {square} = {m.whole} > {n.whole} ? {m.whole} : {n.whole};
const int {tile} = blockIdx.x / {each}, {part} = blockIdx.x % {each};
const int {root} = (int)((sqrtf(8.0f * {tile} + 1.0f) - 1.0f) * 0.5f);
const int {line} = {root} + (({root} + 1LL) * ({root} + 2) / 2 <= {tile}) \
- ({root} * ({root} + 1LL) / 2 > {tile});
{firsts}"""

    def blocks(self, extent: str) -> Expression:
        """How many tiles there are, over the number of rows."""
        m, n = (self.layout.sides[side].whole for side in (ROW, COLUMN))
        squares = f"cdiv({extent}, max({m}, {n}))"
        return parse_expression(
            f"{squares} * ({squares} + 1) / 2 * (max({m}, {n}) / min({m}, {n}))"
        )


def triangle(
    parts: Contraction, layout: Layout, around: Sequence[Condition], forms: Sequence[Polynomial]
) -> Triangle | None:
    """The triangle that all stores lie in; ``forms`` are the tests ``around`` the loop, placed."""
    if parts.outputs.rows != parts.outputs.columns:
        return None
    stores = [a for a in parts.kernel.reading.accesses if a.mode != "load"]
    held = [{part for c in access.guard for part in c.conjuncts()} for access in stores]
    tests = [part for c in around for part in c.conjuncts()]
    for test, form in zip(tests, forms, strict=True):
        if not all(test in each for each in held):
            continue
        for down, across in ((ROW, COLUMN), (COLUMN, ROW)):
            beyond = form - Polynomial.symbol(down) + Polynomial.symbol(across)
            if beyond.value is not None and beyond.value <= 0:
                return Triangle(down, layout)
    return None


def working(parts: Contraction, forms: Sequence[Polynomial], tile: Tile) -> int | None:
    """How many tiles have an output at the measured sizes; None where these are not known.

    It chooses numbers, and may be too many.
    """
    kernel, out = parts.kernel, parts.outputs
    rows, columns = value(kernel, out.rows), value(kernel, out.columns)
    if rows is None or columns is None:
        return None
    down, across = -(-rows // tile.rows), -(-columns // tile.columns)
    tests = []
    for form in forms:
        rest = value(kernel, form.without([ROW, COLUMN]))
        by_row, by_column = ((form.coefficient(s) or form).value or 0 for s in (ROW, COLUMN))
        if rest is not None:
            rest += max(by_row, 0) * (tile.rows - 1) + max(by_column, 0) * (tile.columns - 1)
            tests.append((by_row * tile.rows, by_column * tile.columns, rest))
    if not tests or down > _MOST_LINES:
        return down * across
    total = 0
    for line in range(down):
        first, end = 0, across
        for by_row, by_column, rest in tests:
            left = rest + by_row * line
            if by_column > 0:
                first = max(first, -(left // by_column))
            elif by_column < 0:
                end = min(end, left // -by_column + 1)
            elif left < 0:
                end = 0
        total += max(0, end - first)
    return total
