"""Products and distances of bytes in tiles, four rounds by one instruction.

A sum of whole numbers does not depend on how it is put together, so four neighbouring rounds of an
output are one ``__dp4a``, or one ``__vsadu4`` of how far bytes are apart; squares of that are a
``__dp4a`` of what ``__vabsdiffu4`` finds. A tile has rounds below each other: a thread takes four
of them as words of four rows each, and changes rounds and rows in registers. What lies behind the
last round is zero, in both. Source: PTX ISA, "dp4a", "vabsdiff4" and "prmt".
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.kernels.combining import adds
from optiml_magic.kernels.expressions import Binary, Call, Cast, Choice, Expr, Name
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
        self.four, self.row, self.apart = fresh("four"), fresh("rows"), fresh("apart")
        self.found = self._found()

    @property
    def fits(self) -> list[str]:
        """The conditions on tuned names: a thread has whole words of rows and of columns."""
        return [f"{s.own} >= {_WORD}" for s in self.layout.sides.values()] if self.found else []

    def rounds(self, body: Sequence[Statement]) -> str:
        """All rounds of a tile; nothing where ``body`` is more than such products without tests."""
        if self.found is None or not all(_plain(statement) for statement in body):
            return ""
        (row, column), reduction, form = self.found
        layout, made = self.layout, [self._taken(operand) for operand in (row, column)]
        one, other = (f"{self._now(o)}[{layout.side(o).at}]" for o in (row, column))
        place = layout.sum_of(reduction.place, self.sums[reduction.place])
        signed = named(row.kind, {}).signed
        letter, sign = ("s", "int") if signed else ("u", "unsigned int")
        if form == "distance":
            added = f"{place} += __vsad{letter}4({one}, {other});"
        elif form == "square":
            added = (
                f"const unsigned int {self.apart} = __vabsdiff{letter}4({one}, {other});\n"
                f"{place} = __dp4a({self.apart}, {self.apart}, (unsigned int){place});"
            )
        else:
            added = f"{place} = __dp4a(({sign}){one}, ({sign}){other}, ({sign}){place});"
        made.append(layout.each(added))
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

    def _found(self) -> tuple[tuple[Operand, Operand], Reduction, str] | None:
        """What is combined of rows and of columns, the one sum of an output, and what it is of."""
        parts = self.parts
        own = [r for r in parts.reductions if r.place not in self.layout.margins]
        if len(own) != 1 or not _word(own[0].type) or own[0].op != "+" or len(own[0].values) != 1:
            return None
        added = adding(parts, parts.variables()[own[0].place])
        if len(added) != 1 or not isinstance(added[0], Evaluate) or not adds(added[0].expression):
            return None
        for form, find in _FORMS.items():
            sides = find(parts, own[0].values[0])
            factors = self._factors(*sides) if sides is not None else None
            if factors is not None:
                return factors, own[0], form
        return None

    def _factors(self, *sides: Expr) -> tuple[Operand, Operand] | None:
        found = [byte(self.parts, side) for side in sides]
        row, column = (
            next((o for o in found if o is not None and o.side == side), None)
            for side in (ROW, COLUMN)
        )
        alike = row and column and named(row.kind, {}).signed == named(column.kind, {}).signed
        return (row, column) if row and column and alike else None


def _product(parts: Contraction, value: Expr) -> tuple[Expr, Expr] | None:
    product, kinds = unwrapped(parts, value)
    if not isinstance(product, Binary) or product.op != "*" or not all(map(_word, kinds)):
        return None
    return product.left, product.right


def _square(parts: Contraction, value: Expr) -> tuple[Expr, Expr] | None:
    """The two bytes whose difference is multiplied by itself."""
    sides = _product(parts, value)
    found = [_difference(parts, side) for side in sides or ()]
    one, other = found if len(found) == 2 else (None, None)
    if one is None or other is None:
        return None
    alike = [byte(parts, side) for side in one] == [byte(parts, side) for side in other]
    return one if alike else None


def _distance(parts: Contraction, value: Expr) -> tuple[Expr, Expr] | None:
    """The two bytes of which the less is taken from the greater."""
    made, kinds = unwrapped(parts, value)
    if not all(map(_word, kinds)):
        return None
    match made:
        case Call(function="abs" | "std::abs", arguments=(inner,), receiver=None):
            kind = parts.kernel.reading.types.get(inner)
            own = parts.kernel.unit.called("abs", 1)
            return _difference(parts, inner) if kind and kind.signed and not own else None
        case Choice(test=Binary(op=">" | ">=" | "<" | "<=" as op, left=one, right=other)):
            greater = (one, other) if op[0] == ">" else (other, one)
            if not all(_compares(parts, side) for side in greater):
                return None
            ways = _difference(parts, made.then), _difference(parts, made.other)
            pairs = [way and tuple(byte(parts, side) for side in way) for way in ways]
            first = tuple(byte(parts, side) for side in greater)
            return greater if pairs == [first, first[::-1]] else None
    return None


def _compares(parts: Contraction, value: Expr) -> bool:
    """Whether a byte is compared as what it is: one below zero is great without its sign."""
    operand, kind = byte(parts, value), parts.kernel.reading.types.get(value)
    if operand is None or kind is None:
        return False
    return kind.signed or not named(operand.kind, {}).signed


def _difference(parts: Contraction, value: Expr) -> tuple[Expr, Expr] | None:
    """Two bytes of which the one is taken from the other, and held in a number with a sign."""
    made, kinds = unwrapped(parts, value)
    if not isinstance(made, Binary) or made.op != "-" or not all(map(_wide, kinds)):
        return None
    return made.left, made.right


_FORMS = {"product": _product, "square": _square, "distance": _distance}


def byte(parts: Contraction, value: Expr) -> Operand | None:
    """The operand of bytes that a value is an element of, as it is."""
    value, kinds = unwrapped(parts, value)
    for operand in parts.operands:
        own = named(operand.kind, {})
        if any(access.own is value for access in operand.accesses):
            same = all(_wide(k) or (k.size == 1 and k.signed == own.signed) for k in kinds)
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


def _wide(kind: CType) -> bool:
    """Whether a type holds any byte, and the difference of two, as they are in 32 bits."""
    short = kind.kind == "int" and kind.size == _WORD // 2 and kind.signed and not kind.depth
    return short or _word(kind)


def _plain(statement: Statement) -> bool:
    """Whether a statement has no branch."""
    return all(isinstance(s, Block | Declare | Evaluate) for s in walk(statement))
