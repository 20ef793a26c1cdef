"""Whole numbers that the threads of a block have side by side, beside multiples of its place.

A number is ``at`` for each thread, and the factors of ``by`` times the place of the block along
each axis, or sizes. Where it is not ``known`` it may be any. Arithmetic is that of C++: what a
signed type does not hold, and what may wrap around for some block, is not known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from optiml_magic.kernels.types import BOOL, CType, arithmetic, promoted

Lanes = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
By = tuple[tuple[str, int], ...]
Span = tuple[int, int]
NOWHERE: By = ()
PLACES = frozenset({"blockIdx.x", "blockIdx.y", "blockIdx.z"})  # which are never negative
_MOST = 2**31 - 1  # of a factor of a block's place
_LARGE = 2**62
_COMPARED = {
    "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip
#: Whether a comparison of a sum with 0 is true for all threads of all blocks, or false for them.
Decided = Callable[[str, By, Lanes, Flags], bool | None]


@dataclass(frozen=True, slots=True, eq=False)
class Whole:
    kind: CType
    at: Lanes
    known: Flags
    by: By = NOWHERE
    span: Span | None = None  # between which numbers ``at`` is where it is not known

    @property
    def ends(self) -> Span:
        """The least and the greatest that ``at`` may be."""
        told = self.at[self.known]
        spans = [] if self.known.all() else [self.span or limits(self.kind)]
        spans += [(int(told.min()), int(told.max()))] if len(told) else []
        return min(least for least, _ in spans), max(most for _, most in spans)

    @property
    def number(self) -> int | None:
        """What all threads of all blocks have, where that is one number."""
        if self.by or not self.known.all() or (self.at != self.at[0]).any():
            return None
        return int(self.at[0])


def constant(kind: CType, value: int, lanes: int) -> Whole:
    return _settled(kind, np.full(lanes, value, np.int64), np.ones(lanes, np.bool_), NOWHERE)


def limits(kind: CType) -> Span:
    bits = 8 * (kind.size or 4)
    if kind.kind == "bool":
        return 0, 1
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if kind.signed else (0, 2**bits - 1)


def unknown(kind: CType, lanes: int, span: Span | None = None) -> Whole:
    """A number of which is known at most between which it is."""
    return Whole(kind, np.zeros(lanes, np.int64), np.zeros(lanes, np.bool_), NOWHERE, span)


def _within(kind: CType, span: Span | None) -> Span | None:
    """A span, where a type holds all of it."""
    least, most = limits(kind)
    return span if span is not None and least <= span[0] and span[1] <= most else None


def converted(one: Whole, kind: CType) -> Whole | None:
    """A number in another type of whole numbers."""
    if not kind.integral or kind.lanes != 1:
        return None
    if kind.kind == "bool":
        told = one.known if not one.by else np.zeros_like(one.known)
        return Whole(BOOL, (one.at != 0).astype(np.int64), told)
    if kind == one.kind:
        return one
    made = _settled(kind, one.at, one.known, one.by)
    return made if one.known.all() else replace(made, span=_within(kind, one.ends))


def _settled(kind: CType, at: Lanes, known: Flags, by: By) -> Whole:
    bits = 8 * (kind.size or 4)
    if any(abs(f) > _MOST or (not kind.signed and (f < 0 or n not in PLACES)) for n, f in by):
        return Whole(kind, at, np.zeros_like(known))
    if kind.signed or by or bits == 64:
        least = -(2 ** (bits - 1)) if kind.signed else 0
        most = 2 ** (bits - 1) - 1 if kind.signed or bits == 64 else 2**bits - 1
        return Whole(kind, at, known & (at >= least) & (at <= most), by)
    return Whole(kind, at & (2**bits - 1), known, by)


def combined(op: str, left: Whole, right: Whole) -> Whole | None:
    """``left op right``, of arithmetic, bits and shifts."""
    shift = op in ("<<", ">>")
    kind = promoted(left.kind) if shift else arithmetic(left.kind, right.kind)
    one, other = converted(left, kind), right if shift else converted(right, kind)
    if one is None or other is None:
        return None
    found = _combined(op, kind, one, other)
    if one.known.all() and other.known.all():
        return found
    if found is None and (one.by or other.by):
        return unknown(kind, len(one.at))
    span = _within(kind, _spanned(op, one, other))
    return replace(found or unknown(kind, len(one.at)), span=span)


def _spanned(op: str, one: Whole, other: Whole) -> Span | None:
    """Between which numbers ``at`` of a result is."""
    (a, b), (c, d) = one.ends, other.ends
    if op == "+":
        return a + c, b + d
    if op == "-":
        return a - d, b - c
    if op == "*":
        ends = [a * c, a * d, b * c, b * d]
        return min(ends), max(ends)
    if op == "&" and not (one.by or other.by):
        most = [end for least, end in ((a, b), (c, d)) if least >= 0]
        return (0, min(most)) if most else None
    if op in ("|", "^") and min(a, c) >= 0 and not (one.by or other.by):
        return 0, 2 ** max(b, d).bit_length() - 1
    number = other.number
    if number is None or one.by:
        return None
    if op == "%" and number > 0:
        return (0 if a >= 0 else 1 - number), number - 1
    if op == ">>" and 0 <= number < 63:
        return a >> number, b >> number
    return (a // number, b // number) if op == "/" and number > 0 and a >= 0 else None


def _combined(op: str, kind: CType, one: Whole, other: Whole) -> Whole | None:
    known = one.known & other.known
    if op in ("+", "-"):
        sign = 1 if op == "+" else -1
        by = added(one.by, other.by, sign)
        return _settled(kind, one.at + sign * other.at, known, by)
    if op == "*":
        return _product(kind, one, other, known)
    if op in ("/", "%", "<<", ">>"):
        if other.by:
            return None
        return _divided(op, kind, one, other, known)
    return _bits(op, kind, one, other, known) if op in ("&", "|", "^") else None


def added(one: By, other: By, sign: int) -> By:
    """The factors of a sum or, by a sign of -1, of a difference."""
    found = dict(one)
    for name, factor in other:
        found[name] = found.get(name, 0) + sign * factor
    return tuple(sorted((name, factor) for name, factor in found.items() if factor))


def _product(kind: CType, one: Whole, other: Whole, known: Flags) -> Whole | None:
    if one.by:
        one, other = other, one
    if int(np.abs(one.at).max()) * int(np.abs(other.at).max()) > _LARGE:
        return None
    by = NOWHERE
    if other.by:
        factor = one.number
        if factor is None:
            return None
        by = tuple((name, own * factor) for name, own in other.by if factor)
    return _settled(kind, one.at * other.at, known, by)


def _divided(op: str, kind: CType, one: Whole, other: Whole, known: Flags) -> Whole | None:
    """Quotients, rests and shifts; by one number where the place of the block has a part in it."""
    by = NOWHERE
    divisor, small = other.at, (other.at >= 0) & (other.at < 8 * (kind.size or 4) - 1)
    if op in ("<<", ">>"):
        known = known & small
        divisor = np.where(small, np.int64(1) << np.where(small, divisor, 0), 1)
    if op == "<<":
        return _product(kind, one, replace(other, at=divisor, known=known), known)
    known = known & (divisor != 0)
    divisor = np.where(divisor == 0, 1, divisor)
    if one.by:
        number = replace(other, at=divisor, known=known).number
        if number is None or number < 1 or not _plain(one.by, number):
            return None
        known = known & (one.at >= 0)
        if op != "%":
            by = tuple((name, factor // number) for name, factor in one.by)
    if op == ">>":
        return _settled(kind, one.at // divisor, known, by)
    signs: Lanes = np.sign(one.at) * np.sign(divisor)
    quotient: Lanes = np.abs(one.at) // np.abs(divisor) * signs
    at = quotient if op == "/" else one.at - quotient * divisor
    return _settled(kind, at, known, by)


def _plain(by: By, number: int = 1) -> bool:
    """Whether all of it are places of the block, by multiples of a number above zero."""
    return all(name in PLACES and factor > 0 and factor % number == 0 for name, factor in by)


def _bits(op: str, kind: CType, one: Whole, other: Whole, known: Flags) -> Whole | None:
    if other.by:
        one, other = other, one
    by = one.by
    if other.by or not _plain(by):
        return None
    if by:  # bits below all of those that the place of the block may set
        low = min(factor & -factor for _, factor in by)
        known = known & (one.at >= 0) & (one.at < low) & (other.at >= 0) & (other.at < low)
    if op == "&":
        return _settled(kind, one.at & other.at, known, NOWHERE)
    at = one.at | other.at if op == "|" else one.at ^ other.at
    return _settled(kind, at, known, by)


def compared(op: str, left: Whole, right: Whole, decided: Decided) -> Whole | None:
    """A comparison; of what all blocks have in common, ``decided`` says how many it is apart."""
    kind = arithmetic(left.kind, right.kind)
    one, other = converted(left, kind), converted(right, kind)
    if one is None or other is None:
        return None
    known, apart = one.known & other.known, one.at - other.at
    by = added(one.by, other.by, -1)
    if by:
        answer = decided(op, by, apart, known)
        return Whole(BOOL, np.full_like(apart, answer or 0), known & (answer is not None))
    return Whole(BOOL, _COMPARED[op](apart, 0).astype(np.int64), known)


def extreme(name: str, one: Whole, other: Whole) -> Whole | None:
    kind = arithmetic(one.kind, other.kind)
    left, right = converted(one, kind), converted(other, kind)
    if left is None or right is None or left.by != right.by:
        return None
    pick, choose = (np.minimum, min) if "min" in name else (np.maximum, max)
    (a, b), (c, d) = left.ends, right.ends
    span = choose(a, c), choose(b, d)
    return Whole(kind, pick(left.at, right.at), left.known & right.known, left.by, span)


def merged(new: Whole | None, old: Whole | None, may: Flags, must: Flags) -> Whole | None:
    """``new`` for the threads that must take it, what is known of both for those that may."""
    if new is None:
        return old if old is None else replace(old, known=old.known & ~may, span=None)
    if old is None or old.by != new.by or old.kind != new.kind:
        return replace(new, known=new.known & must, span=None)
    both = new.known & old.known & (new.at == old.at)
    known = np.where(must, new.known, np.where(may, both, old.known))
    (a, b), (c, d) = new.ends, old.ends
    span = min(a, c), max(b, d)
    return replace(new, at=np.where(may, new.at, old.at), known=known, span=span)
