"""Symbols in words, and where they are: shifts, rests and quotients of a place, in any spelling.

``2 * (at % 16)``, ``(at & 15) << 1``, ``30 - 2 * (at % 16)`` and ``2 * at & 31`` are shifts of the
symbols of 2 bits in words of 32; ``at / 16`` and ``at >> 4`` say which word.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, Name, every

BITS = (1, 2, 4, 8)  # of a symbol


@dataclass(frozen=True, eq=False)
class Symbol:
    """``bits`` of a ``word`` of ``width`` bits, ``shift`` from its end: those of place ``at``.

    ``top`` where the first symbol of a word is at its upper end; ``floor`` where the word and the
    place in it are right for places below 0 as well. It is ``alone`` where the word stays.
    """

    word: Expr
    shift: Expr
    at: Expr
    bits: int
    width: int
    top: bool
    floor: bool
    alone: bool = False

    @property
    def array(self) -> str:
        """The name of the array that the word is of; empty where that has none."""
        names = (e.name for e in every(self.word) if isinstance(e, Name) and e.variable)
        return next(names, "")


@dataclass(frozen=True, eq=False)
class Mixed:
    """Symbols that are combined bit by bit, by ``& | ^`` or ``~``."""

    op: str
    parts: tuple[Packed, ...]


Packed = Symbol | Mixed


def leaves(packed: Packed) -> Iterator[Symbol]:
    """The symbols that something is made of."""
    if isinstance(packed, Symbol):
        yield packed
        return
    for part in packed.parts:
        yield from leaves(part)


def mixed(op: str, *parts: Packed | None) -> Mixed | None:
    known = tuple(part for part in parts if part is not None)
    if len(known) < len(parts) or len({one.bits for p in known for one in leaves(p)}) > 1:
        return None
    return Mixed(op, known)


def bare(expr: Expr) -> Expr:
    """An expression without conversions around it."""
    while isinstance(expr, Cast):
        expr = expr.operand
    return expr


def mask_bits(expr: Expr) -> int:
    """The bits of a symbol of which this is the greatest; 0 where it is none."""
    value = expr.value if isinstance(expr, Literal) else None
    return next((b for b in BITS if isinstance(value, int) and value == (1 << b) - 1), 0)


def shifted_place(shift: Expr, bits: int, width: int) -> tuple[Expr, bool, bool] | None:
    """The place whose symbol begins at a shift, whether by a mask, and whether from the top."""
    shift, count = bare(shift), width // bits
    match shift:
        case Binary(op="-", left=left, right=right) if number(left) == width - bits:
            found = shifted_place(right, bits, width)
            return None if found is None or found[2] else (found[0], found[1], True)
    inner = _over(shift, bits)
    if inner is not None:
        inner = bare(inner)
        match inner:
            case Binary(op="-", left=left, right=right) if number(left) == count - 1:
                rest = _rest(bare(right), count)
                return None if rest is None else (*rest, True)
        rest = _rest(inner, count)
        if rest is not None:
            return *rest, False
    rest = _rest(shift, width)  # (2 * at) % 32
    if rest is not None:
        at = _over(bare(rest[0]), bits)
        return None if at is None else (at, rest[1], False)
    return None


def plain_place(shift: Expr, bits: int, width: int) -> tuple[Expr, bool] | None:
    """The place in one word whose symbol begins at a shift, and whether from the top."""
    shift = bare(shift)
    match shift:
        case Binary(op="-", left=left, right=right) if number(left) == width - bits:
            inner = _over(bare(right), bits)
            return None if inner is None else (bare(inner), True)
    inner = _over(shift, bits)
    match bare(inner) if inner is not None else None:
        case Binary(op="-", left=left, right=right) if number(left) == width // bits - 1:
            return bare(right), True
        case None:
            return None
        case place:
            return place, False


def _over(expr: Expr, by: int) -> Expr | None:
    """What is multiplied by a number to make an expression."""
    match expr:
        case Binary(op="*", left=left, right=right) if number(left) == by:
            return right
        case Binary(op="*", left=left, right=right) if number(right) == by:
            return left
        case Binary(op="<<", left=left, right=right):
            power = number(right)
            if power is not None and 1 << power == by:
                return left
    return expr if by == 1 else None


def _rest(expr: Expr, by: int) -> tuple[Expr, bool] | None:
    """What an expression is the rest of, over a power of two, and whether a mask takes it."""
    match expr:
        case Binary(op="%", left=left, right=right) if number(right) == by:
            return left, False
        case Binary(op="&", left=left, right=right):
            if number(right) == by - 1:
                return left, True
            return (right, True) if number(left) == by - 1 else None
    return None


def quotient(expr: Expr, by: int) -> tuple[Expr, bool] | None:
    """What an expression is the quotient of, and whether by a shift."""
    match expr:
        case Binary(op="/", left=left, right=right) if number(right) == by:
            return left, False
        case Binary(op=">>", left=left, right=right):
            power = number(right)
            return (left, True) if power is not None and 1 << power == by else None
    return None


def number(expr: Expr) -> int | None:
    expr = bare(expr)
    value = expr.value if isinstance(expr, Literal) else None
    return value if isinstance(value, int) and 0 <= value < 256 else None
