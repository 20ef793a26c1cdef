"""What a loop asks of packed symbols, asked of all symbols of a word at once.

A flag is a bit, the lowest of its symbol's place in a word: ``(d | d >> 1) & 0x55555555`` are the
flags of symbols of two bits in which two words differ, where ``d`` is what their bits do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.expressions import Binary, Cast, Choice, Expr, Literal, Unary
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.packed import Round
from optiml_magic.kernels.primitives.packed_places import Packed, Symbol, bare

_ALL = ""  # the flags of all symbols, before it is known how many they are
Term = tuple[str, str, bool]  # flags, what each of them adds, and whether it takes that away


@dataclass(eq=False)
class Flags:
    """The expressions of one loop as flags; ``words`` are those that they are made of, by name."""

    round: Round
    bits: int
    width: int
    named: Callable[[Symbol], str]
    shown: Callable[[Expr], str]
    words: list[tuple[str, Symbol]] = field(default_factory=list)
    #: Flags, and the same with other bits beside them; flags that are the opposite of others.
    open: dict[str, str] = field(default_factory=dict)
    denied: dict[str, str] = field(default_factory=dict)

    @property
    def ones(self) -> str:
        """A word of flags that are all set."""
        return self._word(sum(1 << at for at in range(0, self.width, self.bits)))

    def _word(self, value: int) -> str:
        suffix = "ull" if self.width == 64 else "u"
        return f"{value:#x}{suffix}"

    def _name(self, symbol: Symbol) -> str:
        for name, known in self.words:
            word, other = known.word, symbol.word
            if (word is other or same(word, other)) and known.top == symbol.top:
                return name
        if (symbol.bits, symbol.width) != (self.bits, self.width):
            raise NotLegal("its symbols lie differently in their words", self.round.loop.line)
        if self.words and symbol.top != self.words[0][1].top:
            raise NotLegal("its symbols lie differently in their words", self.round.loop.line)
        self.words.append((self.named(symbol), symbol))
        return self.words[-1][0]

    def symbols(self, expr: Expr) -> str | None:
        """A word of symbols; None where an expression is not a symbol, nor made of any."""
        found = self.round.held(expr)
        return None if found is None else self._spelled(found)

    def _spelled(self, found: Packed) -> str:
        if isinstance(found, Symbol):
            return self._name(found)
        parts = [self._spelled(part) for part in found.parts]
        return f"~{parts[0]}" if found.op == "~" else f"({f' {found.op} '.join(parts)})"

    def _same_as(self, expr: Expr) -> str | None:
        """A word whose symbols are all one number."""
        expr = bare(expr)
        value = expr.value if isinstance(expr, Literal) else None
        if not isinstance(value, int) or not 0 <= value < 1 << self.bits:
            return None
        return self._word(sum(value << at for at in range(0, self.width, self.bits)))

    def _any(self, symbols: str) -> str:
        """The flags of symbols that are not 0."""
        if self.bits == 1:
            return symbols
        parts = " | ".join([symbols, *(f"{symbols} >> {n}" for n in range(1, self.bits))])
        flags = f"(({parts}) & {self.ones})"
        self.open[flags] = f"({parts})"
        return flags

    def _not(self, flags: str) -> str:
        if flags in self.denied:
            return self.denied[flags]
        opposite = f"({flags} ^ {self.ones})"
        self.denied[opposite] = flags
        return opposite

    def holds(self, expr: Expr, *, denied: bool = False) -> str:
        """The flags of the symbols for which an expression is not 0, or is where it is denied."""
        found = self._holds(expr)
        if found is None:
            raise NotLegal("what it asks of its symbols is not followed", self.round.loop.line)
        return self._not(found) if denied else found

    def _holds(self, expr: Expr) -> str | None:
        symbols = self.symbols(expr)
        if symbols is not None:
            return self._any(symbols)
        bit = self.round.tested(expr)
        if bit is not None:
            return self._spelled(bit) if self.bits == 1 else None
        match expr:
            case Cast(operand=operand):
                kind = self.round.kind(expr)
                whole = kind.kind == "bool" or (kind.integral and self._is_flag(operand))
                return self._holds(operand) if whole else None
            case Unary(op="!", operand=operand):
                inner = self._holds(operand)
                return None if inner is None else self._not(inner)
            case Binary(op="==" | "!=" as op, left=left, right=right):
                differ = self._differ(left, right)
                return differ if differ is None or op == "!=" else self._not(differ)
            case Binary(op="&&" | "||" as op, left=left, right=right):
                return self._both(op[0], left, right)
            case Binary(op="|", left=left, right=right):
                return self._both("|", left, right)
            case Binary(op="&" | "^" as op, left=left, right=right):
                if self._is_flag(left) and self._is_flag(right):
                    return self._both(op, left, right)
        return None

    def _both(self, op: str, left: Expr, right: Expr) -> str | None:
        ours, theirs = self._holds(left), self._holds(right)
        return None if ours is None or theirs is None else f"({ours} {op} {theirs})"

    def _differ(self, left: Expr, right: Expr) -> str | None:
        """The flags of symbols that are not what they are compared with."""
        sides = [self.symbols(e) or self._same_as(e) for e in (left, right)]
        if None not in sides and (self.symbols(left) or self.symbols(right)):
            return self._any(f"({sides[0]} ^ {sides[1]})")
        for one, other in ((left, right), (right, left)):
            number = bare(other)
            value = number.value if isinstance(number, Literal) else None
            if value == 0 or (value == 1 and self._is_flag(one)):
                inner = self._holds(one)
                return inner if inner is None or value == 0 else self._not(inner)
        if self._is_flag(left) and self._is_flag(right):
            return self._both("^", left, right)
        return None

    def _is_flag(self, expr: Expr) -> bool:
        """Whether an expression is 0 or 1."""
        match expr:
            case Cast(operand=operand):
                kind = self.round.kind(expr)
                return kind.kind == "bool" or (kind.integral and self._is_flag(operand))
            case Unary(op="!"):
                return True
            case Binary(op="==" | "!=" | "<" | ">" | "<=" | ">=" | "&&" | "||"):
                return True
            case Binary(op="&" | "|" | "^", left=left, right=right):
                if self.round.symbol(expr) is None:
                    return self._is_flag(left) and self._is_flag(right)
        symbol = self.round.symbol(expr)
        return symbol is not None and self.bits == 1

    def terms(self, expr: Expr, where: str = _ALL, *, less: bool = False) -> list[Term]:
        """What an expression adds up to over symbols: flags, and what each of them counts.

        ``where`` are the flags of the symbols that count at all.
        """
        if self.round.slope(expr) == 0 and self.round.kind(expr).integral:
            return [] if bare_zero(expr) else [(where, self.shown(expr), less)]
        symbols = self.symbols(expr)
        if symbols is not None:
            return [
                (self._and(where, self._bit(symbols, at)), str(1 << at), less)
                for at in range(self.bits)
            ]
        if self._is_flag(expr):
            return [(self._and(where, self.holds(expr)), "1", less)]
        match expr:
            case Choice(test=test, then=then, other=other):
                yes, no = (self._and(where, self.holds(test, denied=d)) for d in (False, True))
                return [*self.terms(then, yes, less=less), *self.terms(other, no, less=less)]
            case Binary(op="+" | "-" as op, left=left, right=right):
                turned = less != (op == "-")
                return [*self.terms(left, where, less=less), *self.terms(right, where, less=turned)]
            case Binary(op="*", left=left, right=right):
                for steady, moving in ((left, right), (right, left)):
                    if self.round.slope(steady) == 0:
                        by = self.shown(steady)
                        return [(f, _times(w, by), m)
                                for f, w, m in self.terms(moving, where, less=less)]  # fmt: skip
        raise NotLegal("what it adds up is not followed", self.round.loop.line)

    def _bit(self, symbols: str, at: int) -> str:
        if self.bits == 1:
            return symbols
        return f"({symbols} >> {at} & {self.ones})" if at else f"({symbols} & {self.ones})"

    @staticmethod
    def _and(where: str, flags: str) -> str:
        return f"({where} & {flags})" if where else flags

    def where(self, tests: tuple[tuple[Expr, bool], ...]) -> str:
        """The flags of the symbols for which all tests hold, or do not where they are denied."""
        found = _ALL
        for test, denied in tests:
            found = self._and(found, self.holds(test, denied=denied))
        return found


def bare_zero(expr: Expr) -> bool:
    """Whether an expression is the number 0."""
    number = bare(expr)
    return isinstance(number, Literal) and number.value == 0


def _times(one: str, other: str) -> str:
    return other if one == "1" else one if other == "1" else f"{one} * {other}"
