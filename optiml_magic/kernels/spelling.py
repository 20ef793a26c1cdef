"""Forms and conditions of a reading as C++, over names that hold where the text is put."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

from optiml_magic.kernels.polynomial import Monomial, Polynomial
from optiml_magic.kernels.symbols import (
    Always,
    Compare,
    Condition,
    Every,
    Some,
    Symbol,
    Symbols,
)

_INFIX = frozenset({"/", "%", "&", "|", "^", ">>"})
_FUNCTIONS = frozenset({"min", "max", "abs"})
_DEEPEST = 12
_LONG = 8  # bytes
_WORD = re.compile(r"(\([a-z_ ]+\))*[\w.]+")  # converted or not
_CONVERTED = re.compile(r"\b(?:long|size_t|ptrdiff_t|u?int64_t)\b")


class Unspelled(Exception):  # noqa: N818  # it says what happened
    """A form has a part that no text stands for: memory that changes, an unknown value."""


class Speller:
    """``names`` are what symbols are called; scalars and built-in variables keep their own.

    ``wide`` computes products in 64 bits. Arrays in ``steady`` may be read again; a scalar in
    ``moved`` is not called by its name, which stands for something else by then.
    """

    def __init__(
        self,
        symbols: Symbols,
        names: Mapping[str, str],
        *,
        wide: bool = False,
        steady: frozenset[str] = frozenset(),
        moved: frozenset[str] = frozenset(),
    ) -> None:
        self.symbols = symbols
        self.names = dict(names)
        self.wide = wide
        self.kind = "size_t"  # of what is wide
        self.steady = steady
        self.moved = moved

    def form(self, form: Polynomial, depth: int = 0) -> str:
        """A sum, its products in the order in which a person writes an index."""
        if depth > _DEEPEST:
            raise Unspelled("it is too long")
        text = ""
        for monomial, factor in sorted(form.terms, key=self._place):
            product = self._product(monomial, abs(factor), depth)
            sign = "-" if factor < 0 else "+"
            text = f"{text} {sign} {product}" if text else f"{'-' if factor < 0 else ''}{product}"
        return text or "0"

    def factor(self, form: Polynomial) -> str:
        """A form where a product may stand: in parentheses if it is a sum."""
        text = self.form(form)
        return f"({text})" if len(form.terms) > 1 or text.startswith("-") else text

    def condition(self, condition: Condition) -> str:
        """A test; raises Unspelled for one on what is no integer of the reading."""
        match condition:
            case Always(value=value):
                return "true" if value else "false"
            case Compare(op=op, form=form):
                less = Polynomial.of({m: -c for m, c in form.terms if c < 0})
                more = Polynomial.of({m: c for m, c in form.terms if c > 0})
                if op == ">=" and dict(form.terms).get(()) == -1:
                    return f"{self.form(less - Polynomial.constant(1))} < {self.form(more)}"
                spelled = {">=": "<="}.get(op, op)
                return f"{self.form(less)} {spelled} {self.form(more)}"
            case Every(parts=parts):
                return " && ".join(f"({self.condition(part)})" for part in parts)
            case Some(parts=parts):
                return " || ".join(f"({self.condition(part)})" for part in parts)
        raise Unspelled("a test is not a comparison of whole numbers")

    def _product(self, monomial: Monomial, factor: int, depth: int) -> str:
        words = sorted((self._word(name, depth) for name in monomial), key=len, reverse=True)
        if factor != 1 or not words:
            words.append(str(factor))
        if self.wide and len(words) > 1:
            words[0] = f"({self.kind}){words[0]}"
        return " * ".join(words)

    def local(self, form: Polynomial) -> Polynomial:
        """A form as it is spelled here; what is inside of an operation comes this way as well."""
        return form

    def name(self, name: str) -> str | None:
        """What a symbol is called by its own name here."""
        return self.names.get(name)

    def _word(self, name: str, depth: int) -> str:
        return self.name(name) or self._symbol(self.symbols[name], depth)

    def _symbol(self, symbol: Symbol, depth: int) -> str:
        if symbol.kind in ("scalar", "builtin"):
            if symbol.name.partition(".")[0] in self.moved:
                raise Unspelled(f"`{symbol.name}` changes")
            return symbol.name
        if (
            symbol.kind == "load"
            and symbol.array in self.steady - self.moved
            and len(symbol.arguments) == 1
        ):
            array = symbol.array
            if symbol.seen:
                array = f"reinterpret_cast<const {symbol.seen}*>({array})"
            return f"{array}[{self.form(self.local(symbol.arguments[0]), depth + 1)}]"
        if symbol.kind == "operation" and symbol.op in _INFIX and len(symbol.arguments) == 2:
            sides = [self._side(argument, depth) for argument in symbol.arguments]
            return f"({sides[0]} {symbol.op} {sides[1]})"
        if symbol.kind == "operation" and symbol.op in _FUNCTIONS:
            with self._signed():
                parts = [self.form(self.local(a), depth + 1) for a in symbol.arguments]
            if self._any_long(symbol.arguments) or any(map(_CONVERTED.search, parts)):
                # of two numbers of other lengths none is the least
                parts = [_converted(part, "long long") for part in parts]
            return f"{symbol.op}({', '.join(parts)})"
        if symbol.kind == "select" and symbol.condition is not None and len(symbol.arguments) == 2:
            with self._signed():
                test = self.condition(self._here(symbol.condition))
                one, two = (self._side(argument, depth) for argument in symbol.arguments)
            return f"({test} ? {one} : {two})"
        raise Unspelled(f"`{symbol.name}` is not known there")

    @contextmanager
    def _signed(self) -> Iterator[None]:
        """Where a number may be below zero, which one of more bits without a sign is not."""
        kind, self.kind = self.kind, "long long"
        try:
            yield
        finally:
            self.kind = kind

    def is_long(self, name: str) -> bool:
        """Whether a symbol, or what it is computed from, has 64 bits here."""
        symbol = self.symbols.table.get(name)
        if symbol is None or self.name(name) is not None:
            return False
        own = symbol.width == _LONG and symbol.kind in ("scalar", "load")
        return own or (symbol.kind != "load" and self._any_long(symbol.arguments))

    def _any_long(self, forms: Iterable[Polynomial]) -> bool:
        return any(self.is_long(name) for f in forms for name in self.local(f).symbols)

    def _here(self, condition: Condition) -> Condition:
        """A test whose forms are those that are spelled here."""
        if isinstance(condition, Compare):
            return replace(condition, form=self.local(condition.form))
        if isinstance(condition, (Every, Some)):
            return replace(condition, parts=tuple(map(self._here, condition.parts)))
        return condition

    def _side(self, form: Polynomial, depth: int) -> str:
        form = self.local(form)
        text = self.form(form, depth + 1)
        return f"({text})" if len(form.terms) > 1 or not is_one(text) else text

    @staticmethod
    def _place(term: tuple[Monomial, int]) -> tuple[bool, bool, int]:
        """What is taken away after what is there, products before lone names, numbers last."""
        monomial, factor = term
        return factor < 0, not monomial, -len(monomial)


def _converted(words: str, kind: str) -> str:
    """Words as a number of this kind, as which they may be spelled already."""
    if words.startswith(f"({kind})") and is_one(words):
        return words
    return f"({kind}){words}" if is_one(words) else f"({kind})({words})"


def is_one(words: str) -> bool:
    """Whether words are one operand wherever they stand: a single one, or all in one bracket."""
    if _WORD.fullmatch(words):
        return True
    depth = 0
    for at, letter in enumerate(words):
        depth += (letter in "([") - (letter in ")]")
        if depth == 0 and (letter == " " or (letter == ")" and at + 1 < len(words))):
            return False
    return True
