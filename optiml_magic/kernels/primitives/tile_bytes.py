"""Products of bytes in tiles, four rounds by one instruction.

A sum of whole numbers does not depend on how it is put together, so four neighbouring rounds of an
output are one ``__dp4a``. A tile has rounds below each other: a thread takes four of them as words
of four rows each, and changes rounds and rows in registers. What lies behind the last round is
zero. Source: PTX ISA, "dp4a" and "prmt".
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.combining import adds
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Name
from optiml_magic.kernels.primitives.operands import COLUMN, ROW, Contraction, Operand
from optiml_magic.kernels.primitives.tile_layout import Layout
from optiml_magic.kernels.primitives.tile_sums import adding
from optiml_magic.kernels.primitives.tiles import Tiles
from optiml_magic.kernels.reading import Reduction
from optiml_magic.kernels.tree import Block, Declare, Evaluate, Statement, Variable, walk
from optiml_magic.kernels.types import CType, named

_WORD = 4  # bytes, and rounds
_FOURS = (  # the first and second, the third and fourth of a row's rounds; then all four
    ("0x5140", "0x5410"), ("0x5140", "0x7632"), ("0x7362", "0x5410"), ("0x7362", "0x7632"),
)  # fmt: skip


class Bytes:
    """The rounds of a product of bytes; ``fits`` says for which tiles."""

    def __init__(self, layout: Layout, tiles: Tiles, sums: dict[str, str]) -> None:
        self.layout, self.tiles, self.sums = layout, tiles, sums
        self.parts = layout.parts
        fresh = self.parts.kernel.fresh
        self.four, self.row = fresh("four"), fresh("rows")
        self.found = self._found()

    @property
    def fits(self) -> list[str]:
        """The conditions on tuned names: a thread has whole words of rows and of columns."""
        return [f"{s.own} >= {_WORD}" for s in self.layout.sides.values()] if self.found else []

    def rounds(self, body: Sequence[Statement]) -> str:
        """All rounds of a tile; nothing where ``body`` is more than such products without tests."""
        if self.found is None or not all(_plain(statement) for statement in body):
            return ""
        (row, column), reduction = self.found
        layout, made = self.layout, [self._taken(operand) for operand in self.found[0]]
        one, other = (f"{self._now(o)}[{layout.side(o).at}]" for o in (row, column))
        place = layout.sum_of(reduction.place, self.sums[reduction.place])
        sign = "int" if named(row.kind, {}).signed else "unsigned int"
        product = f"__dp4a(({sign}){one}, ({sign}){other}, ({sign}){place})"
        made.append(layout.each(f"{place} = {product};"))
        deep = layout.round
        head = f"for (int {deep} = 0; {deep} < {layout.deep}; {deep} += {_WORD})"
        return f"#pragma unroll\n{head} {{\n" + "\n".join(made) + "\n}"

    def _now(self, operand: Operand) -> str:
        return self.layout.names[operand][2]

    def _taken(self, operand: Operand) -> str:
        """Four rounds of a thread's rows or columns, a word each."""
        layout, row = self.layout, self.row
        side, now, at = layout.side(operand), self._now(operand), layout.at
        word = self.tiles.taken(operand, at, f"({layout.round} + {self.four})")
        lines = [
            f"unsigned int {row}[{_WORD}];",
            f"#pragma unroll\nfor (int {self.four} = 0; {self.four} < {_WORD}; ++{self.four})",
            f"{row}[{self.four}] = *reinterpret_cast<const unsigned int*>(&{word});",
        ]
        for n, (pairs, both) in enumerate(_FOURS):
            one, other = (f"__byte_perm({row}[{i}], {row}[{i + 1}], {pairs})" for i in (0, 2))
            lines.append(f"{now}[{at} + {n}] = __byte_perm({one}, {other}, {both});")
        return (
            f"unsigned int {now}[{side.own}];\n#pragma unroll\n"
            f"for (int {at} = 0; {at} < {side.own}; {at} += {_WORD}) {{\n"
            + "\n".join(lines)
            + "\n}"
        )

    def _found(self) -> tuple[tuple[Operand, Operand], Reduction] | None:
        """Both factors, and the one sum of an output."""
        parts = self.parts
        own = [r for r in parts.reductions if r.place not in self.layout.margins]
        if len(own) != 1 or not _word(own[0].type) or own[0].op != "+" or len(own[0].values) != 1:
            return None
        added = adding(parts, parts.variables()[own[0].place])
        if len(added) != 1 or not isinstance(added[0], Evaluate) or not adds(added[0].expression):
            return None
        factors = self._factors(own[0].values[0])
        return (factors, own[0]) if factors is not None else None

    def _factors(self, value: Expr) -> tuple[Operand, Operand] | None:
        product, kinds = unwrapped(self.parts, value)
        if not isinstance(product, Binary) or product.op != "*" or not all(map(_word, kinds)):
            return None
        found = [byte(self.parts, side) for side in (product.left, product.right)]
        row, column = (
            next((o for o in found if o is not None and o.side == side), None)
            for side in (ROW, COLUMN)
        )
        alike = row and column and named(row.kind, {}).signed == named(column.kind, {}).signed
        return (row, column) if row and column and alike else None


def byte(parts: Contraction, value: Expr) -> Operand | None:
    """The operand of bytes that a value is an element of, as it is."""
    value, kinds = unwrapped(parts, value)
    for operand in parts.operands:
        own = named(operand.kind, {})
        if any(access.own is value for access in operand.accesses):
            same = all(_word(k) or (k.size == 1 and k.signed == own.signed) for k in kinds)
            return operand if own.kind == "int" and own.size == 1 and same else None
    return None


def unwrapped(parts: Contraction, value: Expr) -> tuple[Expr, list[CType]]:
    """What a value is without locals of a round and conversions, and the types of these."""
    aliases, kinds = parts.kernel.unit.aliases, list[CType]()
    lets = {v for s in walk(parts.loop.body) if isinstance(s, Declare) for v in s.variables}
    lets &= parts.effects.lasting
    while True:
        match value:
            case Name(variable=Variable(value=Expr() as held, type=kind) as own) if own in lets:
                if kind.depth or kind.reference or own.array:
                    return value, kinds
                value = held
                kinds.append(named(kind.base, aliases))
            case Cast(type=spelled, operand=operand):
                value = operand
                kinds.append(named(spelled, aliases))
            case _:
                return value, kinds


def _word(kind: CType) -> bool:
    return kind.kind == "int" and kind.size == _WORD and not kind.depth


def _plain(statement: Statement) -> bool:
    """Whether a statement has no branch."""
    return all(isinstance(s, Block | Declare | Evaluate) for s in walk(statement))
