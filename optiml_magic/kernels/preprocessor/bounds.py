"""Integers of the preprocessor that are known within bounds, and its operators on them."""

from __future__ import annotations

import re
from typing import NamedTuple

from optiml_magic.errors import SourceError
from optiml_magic.kernels.preprocessor.tokens import UnfaithfulError
from optiml_magic.source.operators import apply_binary

LOW, HIGH = -(2**63), 2**63 - 1
_WRAP = 2**64
_INTEGER = re.compile(
    r"(?P<digits>0[xX][\da-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)"
    r"(?:(?P<u>[uU])(?:ll|LL|[lLzZ])?|(?:ll|LL|[lLzZ])(?P<lu>[uU])?)?",
    re.ASCII,
)
_CHARACTER = re.compile(r"'([ !#-&(-\[\]-~])'")


class Value(NamedTuple):
    """An integer between two bounds, both included."""

    low: int
    high: int
    unsigned: bool = False

    @property
    def truth(self) -> bool | None:
        """Whether it is other than zero, None where that cannot be decided."""
        if self.low > 0 or self.high < 0:
            return True
        return False if self.low == self.high == 0 else None

    @property
    def exact(self) -> bool:
        return self.low == self.high

    def as_unsigned(self) -> Value:
        """An exact value as C converts it."""
        return Value(self.low % _WRAP, self.high % _WRAP, True)


UNKNOWN = Value(LOW, _WRAP - 1)
YES, NO, EITHER = Value(1, 1), Value(0, 0), Value(0, 1)


def literal(text: str) -> Value:
    """The value of an integer or of a simple character; UnfaithfulError for anything else."""
    if (character := _CHARACTER.fullmatch(text)) is not None:
        return _exactly(ord(character[1]), False)
    match = _INTEGER.fullmatch(text.replace("'", ""))
    if match is None or len(text) > 70:
        raise UnfaithfulError
    digits = match["digits"]
    octal = digits[0] == "0" and digits.isdigit()
    number = int(digits, 8) if octal else int(digits, 0)
    if number >= _WRAP:
        raise UnfaithfulError
    return _exactly(number, bool(match["u"] or match["lu"]) or number > HIGH)


def apply_sign(sign: str, value: Value) -> Value:
    """``!``, ``-``, ``~`` or ``+`` before a value."""
    if sign == "!":
        return _told(None if value.truth is None else not value.truth)
    if sign == "+":
        return value
    if not value.exact:
        return UNKNOWN
    return _exactly(-value.low if sign == "-" else ~value.low, value.unsigned)


def apply(operator: str, left: Value, right: Value) -> Value:
    """One operator of two operands; UNKNOWN where C leaves the result open."""
    if operator in ("&&", "||"):
        decides = operator == "||"
        if decides in (left.truth, right.truth):
            return _told(decides)
        return _told(None if None in (left.truth, right.truth) else not decides)
    shifts = operator in ("<<", ">>")
    unsigned = left.unsigned or (right.unsigned and not shifts)
    if left.exact and right.exact:
        if unsigned:
            left, right = left.as_unsigned(), right if shifts else right.as_unsigned()
        try:
            made = apply_binary(operator, left.low, right.low)
        except SourceError:  # a division by zero, or a shift by too much
            return UNKNOWN
        compares = operator in ("<", "<=", ">", ">=", "==", "!=")
        return _exactly(made, unsigned and not compares)
    if unsigned and (left.low < 0 or right.low < 0):
        return UNKNOWN
    return _compared(operator, left, right)


def chosen(condition: bool | None, then: Value, otherwise: Value) -> Value:
    """The value of ``condition ? then : otherwise``."""
    if condition is None:
        picked = then if then == otherwise else UNKNOWN
    else:
        picked = then if condition else otherwise
    if then.unsigned or otherwise.unsigned:
        return picked.as_unsigned() if picked.exact else UNKNOWN
    return picked


def _compared(operator: str, left: Value, right: Value) -> Value:
    """What a comparison tells of values that are known within bounds."""
    if operator in (">", ">="):
        left, right = right, left
    if operator in ("<", ">"):
        return _told(left.high < right.low or (None if left.low < right.high else False))
    if operator in ("<=", ">="):
        return _told(left.high <= right.low or (None if left.low <= right.high else False))
    if operator in ("==", "!="):
        apart = left.high < right.low or right.high < left.low
        return _told((operator == "!=") if apart else None)
    return UNKNOWN


def _told(answer: bool | None) -> Value:
    return EITHER if answer is None else YES if answer else NO


def _exactly(number: int, unsigned: bool) -> Value:
    """A result as C has it: unsigned ones wrap, signed ones that do not fit are left open."""
    if unsigned:
        number %= _WRAP
    elif not LOW <= number <= HIGH:
        return UNKNOWN
    return Value(number, number, unsigned)
