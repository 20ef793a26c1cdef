"""Statements for two neighbouring items at once, each in one half of a 32-bit word.

A byte widened to 16 bits is a half as it is: a whole number of units of the least denormal, which
half arithmetic adds, multiplies and compares exactly up to 2048. Sums beyond that, of numbers that
are not negative, are those of the words themselves; or else a sum is rounded, once, where extremes
alone ask for it, which bring it back to where halves are exact. No value is ever minus zero, so a
number up to 2048 has the same bits as a half and as a word of 16 bits.
Sources: IEEE 754, binary16; CUDA Math API, "Half2 Arithmetic Functions"; PTX ISA, ``prmt``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import gcd

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.pair_values import (
    BYTES,
    Chosen,
    Element,
    Extreme,
    Linear,
    Magnitude,
    Quotient,
    Value,
    constant,
)
from optiml_magic.kernels.types import CType

_EXACT = 2048  # below which halves, of 11 bits, hold all whole numbers
_WORD = 0xFFFF
_BOTH = 0x10001
_SIGN = 0x8000
_MOST = 400  # operations of an item that are worth writing out: ours
_MASKS = {">": "__hgt2_mask", ">=": "__hge2_mask", "==": "__heq2_mask", "!=": "__hne2_mask"}

_HALVES = """
__device__ __forceinline__ __half2 pair_halves(unsigned pair) {
    return *reinterpret_cast<__half2*>(&pair);
}"""
_BITS = """
__device__ __forceinline__ unsigned pair_bits(__half2 pair) {
    return *reinterpret_cast<unsigned*>(&pair);
}"""
_AT = """
__device__ __forceinline__ unsigned pair_at(const unsigned char* row, int at) {
    const unsigned* words = reinterpret_cast<const unsigned*>(row) + at / 4;
    if (at % 4 < 3) return __byte_perm(words[0], 0, 0x4140 + at % 4 * 0x0101);
    const unsigned last = __byte_perm(words[0], 0, 0x4342);
    return __byte_perm(last, __byte_perm(words[1], 0, 0x4140), 0x5432);
}"""
HELPERS = (_HALVES, _BITS, _AT)
NAMES = frozenset({"pair_halves", "pair_bits", "pair_at"})


class Lines(ABC):
    """The lines that compute some values of two items, each of which ``name`` finds.

    ``ends`` are the bytes of a word that a narrow number of each item ends with.
    """

    ends: tuple[int, int]

    def __init__(self, item: str, fresh: str, roots: Iterable[Value]) -> None:
        self.item = item
        self.fresh = fresh
        self.lines: list[str] = []
        self.values = set[Value]()
        self._names: dict[object, str] = {}
        self._uses: Counter[Value] = Counter()
        todo = [*roots]
        while todo:
            value = todo.pop()
            if value not in self.values:
                self.values.add(value)
                self._uses.update(value.parts)
                todo += value.parts

    @abstractmethod
    def stored(self, value: Value, kind: CType) -> str:
        """The name of a value that is stored as a number of this type."""

    def name(self, value: Value) -> str:
        if value not in self._names:
            self._names[value] = self._made(value)
        return self._names[value]

    @abstractmethod
    def _made(self, value: Value) -> str:
        """The name of a value that none of the lines computes yet; no constant."""

    @abstractmethod
    def _combined(self, which: str, left: str, right: str) -> str:
        """The words for the extremes of two names."""

    def _rounded(self, value: Value) -> str:
        """A value where extremes alone ask for it."""
        return self.name(value)

    def _let(self, key: object, words: str) -> str:
        if key not in self._names:
            if len(self.lines) >= _MOST:
                raise NotLegal("an item is too long to be written out")
            self._names[key] = f"{self.fresh}_{len(self.lines)}"
            self.lines.append(f"const unsigned {self._names[key]} = {words};")
        return self._names[key]

    def _extreme(self, value: Extreme) -> str:
        """Extremes of a row first, which items of the next row ask for as well."""
        rows: dict[object, list[Value]] = {}
        for one in self._flat(value, value.which):
            key = (one.array, one.row) if isinstance(one, Element) else one
            rows.setdefault(key, []).append(one)
        whole = ""
        for row in rows.values():
            row.sort(key=lambda v: v.at if isinstance(v, Element) else 0)
            made = self._rounded(row[0])
            for other in row[1:]:
                made = self._better(value.which, made, self._rounded(other))
            whole = self._better(value.which, whole, made) if whole else made
        return whole

    def _better(self, which: str, left: str, right: str) -> str:
        return self._let((which, left, right), self._combined(which, left, right))

    def _flat(self, value: Value, which: str) -> list[Value]:
        if not isinstance(value, Extreme) or value.which != which:
            return [value]
        found: dict[Value, None] = {}
        for part in value.parts:
            inner = self._flat(part, which) if self._uses[part] == 1 else [part]
            found |= dict.fromkeys(inner)
        return [*found]


class PairLines(Lines):
    """The lines that compute some values of bytes, as whole numbers that are halves as well."""

    ends = (0, 2)

    def stored(self, value: Value, kind: CType) -> str:
        if kind.size != 1 or kind.signed:
            raise NotLegal("an item stores more than bytes")
        if isinstance(value, Quotient) and value.by <= 256 and value.by & (value.by - 1) == 0:
            return self._let(("low", value), self._shifted(value))
        return self.name(value)

    def name(self, value: Value) -> str:
        known = constant(value)
        if known is not None:
            if not _is_exact(known, known):
                raise NotLegal(f"{known} is beyond what halves hold exactly")
            return _bits(known)
        return super().name(value)

    def _rounded(self, value: Value) -> str:
        """A value rounded to what halves hold, where extremes alone ask for it."""
        if _is_exact(value.low, value.high):
            return self.name(value)
        key = ("rounded", value)
        if key not in self._names:
            match value:
                case Linear():
                    self._names[key] = self._linear(value, rounded=True)
                case Extreme():
                    self._names[key] = self._extreme(value)
                case _:
                    raise NotLegal("a number may be beyond what halves hold exactly")
        return self._names[key]

    def _made(self, value: Value) -> str:
        match value:
            case Element(array=array, row=row, at=at, step=1, kind=kind) if kind == BYTES:
                return self._let(value, f"pair_at({array}{row}, {self.item} + {at})")
            case Element():
                raise NotLegal("only unsigned bytes that lie side by side become halves")
            case Linear():
                return self._linear(value)
            case Extreme() if _is_exact(value.low, value.high):
                return self._extreme(value)
            case Magnitude(of=of):
                return self._let(value, f"pair_bits(__habs2({self._halves(of)}))")
            case Quotient(of=of, by=by) if by & (by - 1) == 0:
                kept = (_WORD >> by.bit_length() - 1) * _BOTH
                return self._let(value, f"{self._shifted(value)} & {kept:#x}u")
            case Quotient(of=of, by=by):
                return self._let(value, self._divided(self.name(of), int(of.high), by))
            case Chosen(compared=op, left=left, right=right, then=then, other=other):
                mask = self._let((op, left, right), f"{_MASKS[op]}({self._halves(left, right)})")
                one, two = self.name(then), self.name(other)
                return self._let(value, f"({mask} & {one}) | (~{mask} & {two})")
        raise NotLegal("a number may be beyond what halves hold exactly")

    def _halves(self, *values: Value) -> str:
        if any(not _is_exact(value.low, value.high) for value in values):
            raise NotLegal("a number may be beyond what halves hold exactly")
        return ", ".join(f"pair_halves({self.name(value)})" for value in values)

    def _shifted(self, value: Quotient) -> str:
        return f"{self.name(value.of)} >> {value.by.bit_length() - 1}"

    def _divided(self, name: str, most: int, by: int) -> str:
        """Quotients by a product with the reciprocal, which is right for all numbers up to most."""
        times = (_WORD + 1) // by + 1
        if times * most >= 1 << 32 or any(n * times >> 16 != n // by for n in range(most + 1)):
            raise NotLegal(f"quotients by {by} are not those by its reciprocal")
        low, high = f"({name} & {_WORD:#x}u) * {times}u", f"({name} >> 16) * {times}u"
        return f"__byte_perm({low}, {high}, 0x7632)"

    def _combined(self, which: str, left: str, right: str) -> str:
        return _halves_by(f"__h{which}2", left, right)

    def _both(self, function: str, left: str, right: str) -> str:
        return self._let((function, left, right), _halves_by(function, left, right))

    def _linear(self, value: Linear, *, rounded: bool = False) -> str:
        """Sums of a row first, which items of the next row ask for as well."""
        rows: dict[object, list[tuple[Value, int]]] = {}
        for one, by in value.terms:
            key = (one.array, one.row) if isinstance(one, Element) else one
            rows.setdefault(key, []).append((one, by))
        terms: list[_Term] = []
        for row in rows.values():
            row.sort(key=lambda term: term[0].at if isinstance(term[0], Element) else 0)
            common = gcd(*(by for _, by in row)) * (1 if row[-1][1] > 0 else -1)
            parts = [self._term(one, by // common) for one, by in row]
            low, high = (sum(part.ends[end] for part in parts) for end in (0, 1))
            name = self._sum(parts, 0)
            if name is None:
                break
            terms.append(_Term(name, low, high, common))
        whole = self._sum(terms, value.number, rounded) if len(terms) == len(rows) else None
        alone = [self._term(*one) for one in value.terms]
        whole = whole or self._sum(alone, value.number, rounded)
        if whole is None:
            raise NotLegal("a sum may be beyond what halves hold exactly")
        return whole

    def _term(self, value: Value, times: int) -> _Term:
        return _Term(self.name(value), value.low, value.high, times)

    def _sum(self, terms: Sequence[_Term], number: int, rounded: bool = False) -> str | None:
        """A sum, or None where one on the way may be out of bounds."""
        rising = sorted(terms, key=lambda term: (term.times < 0, abs(term.times)))
        for order in (rising, sorted(terms, key=lambda term: (term.times > 0, abs(term.times)))):
            if _fit_halves(order, number, rounded):
                made = _bits(number) if number else ""
                for term in order:
                    made = self._added(made, term)
                return made
        if rounded or not _fit_words(rising, number):
            return None
        words = _bits(number) if number > 0 else ""
        for term in rising:
            product = term.name if abs(term.times) == 1 else f"{term.name} * {abs(term.times)}u"
            words = f"{words} {'-' if term.times < 0 else '+'} {product}" if words else product
        words += f" - {_bits(-number)}" if number < 0 else ""
        return self._let(words, words)

    def _added(self, made: str, term: _Term) -> str:
        if term.times == 1:
            return self._both("__hadd2", made, term.name) if made else term.name
        if term.times == -1:
            return self._both("__hsub2", made or "0u", term.name)
        times = f"__float2half2_rn({term.times}.0f)"
        given = f"pair_halves({term.name}), {times}, pair_halves({made or '0u'})"
        words = f"pair_bits(__hfma2({given}))"
        return self._let(words, words)


@dataclass(frozen=True)
class _Term:
    """What is added: its name, its range, and how often."""

    name: str
    low: float
    high: float
    times: int

    @property
    def ends(self) -> tuple[float, float]:
        low, high = sorted((self.times * self.low, self.times * self.high))
        return low, high


def _fit_halves(terms: Sequence[_Term], number: int, rounded: bool) -> bool:
    """Whether halves hold every sum on the way, but for the last where that may be ``rounded``."""
    low = high = float(number)
    exact = _is_exact(low, high) and bool(terms)
    for term in terms:
        exact = exact and _is_exact(term.low, term.high) and abs(term.times) <= _EXACT
        low, high = low + term.ends[0], high + term.ends[1]
        if rounded and term is terms[-1]:
            return exact and -_WORD <= low <= high <= _WORD
        exact = exact and _is_exact(low, high)
    return exact


def _fit_words(terms: Sequence[_Term], number: int) -> bool:
    """Whether 16 bits without a sign hold every sum on the way, and every product."""
    low = high = float(max(number, 0))
    for term in terms:
        low, high = low + term.ends[0], high + term.ends[1]
        if term.low < 0 or low < 0 or max(high, -term.ends[0]) > _WORD:
            return False
    return high <= _WORD and low + min(number, 0) >= 0


def _is_exact(low: float, high: float) -> bool:
    return -_EXACT <= low <= high <= _EXACT


def _halves_by(function: str, left: str, right: str) -> str:
    return f"pair_bits({function}(pair_halves({left}), pair_halves({right})))"


def _bits(number: int) -> str:
    return f"{(number if number >= 0 else _SIGN | -number) * _BOTH:#x}u"
