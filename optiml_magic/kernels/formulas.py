"""A form over scalars as an expression that a directive may hold."""

from __future__ import annotations

import re
from collections.abc import Sequence

from optiml_magic.errors import SourceError
from optiml_magic.kernels.polynomial import Monomial, Polynomial
from optiml_magic.kernels.symbols import Symbols
from optiml_magic.source.expressions import Expression, parse_expression

_INFIX = frozenset({"/", "%", "&", "|", "^", ">>"})
_FUNCTIONS = frozenset({"min", "max"})
_DEEPEST = 20


def expression(form: Polynomial, symbols: Symbols, names: Sequence[str]) -> Expression | None:
    """The form in the order of ``names``; None where it holds anything but these and numbers."""
    text = _text(form, symbols, names, 0)
    try:
        return _tidy(parse_expression(text)) if text is not None else None
    except SourceError:  # longer or deeper than a directive may be
        return None


def _text(form: Polynomial, symbols: Symbols, names: Sequence[str], depth: int) -> str | None:
    if depth > _DEEPEST:
        return None
    order = {name: at for at, name in enumerate(names)}
    terms = sorted(form.terms, key=lambda term: _place(term[0], term[1], order))
    text = ""
    for monomial, factor in terms:
        parts = [str(abs(factor))] if abs(factor) != 1 or not monomial else []
        for name in sorted(monomial, key=lambda n: order.get(n, len(order))):
            part = name if name in order else _operation(name, symbols, names, depth)
            if part is None:
                return None
            parts.append(part)
        sign = "-" if factor < 0 else "+"
        text = f"{text} {sign} {' * '.join(parts)}" if text or factor < 0 else " * ".join(parts)
    return text.strip() or "0"


def _place(monomial: Monomial, factor: int, order: dict[str, int]) -> tuple[bool, bool, int]:
    """Numbers last, what is taken away after what is there."""
    return not monomial, factor < 0, min((order.get(n, len(order)) for n in monomial), default=0)


def _operation(name: str, symbols: Symbols, names: Sequence[str], depth: int) -> str | None:
    symbol = symbols.table.get(name)  # a scalar that the kernel is not given has none
    if symbol is None or symbol.kind != "operation" or symbol.op not in _INFIX | _FUNCTIONS:
        return None
    sides = [_text(argument, symbols, names, depth + 1) for argument in symbol.arguments]
    if None in sides:
        return None
    if symbol.op in _FUNCTIONS:
        return f"{symbol.op}({sides[0]}, {sides[1]})"
    return f"(({sides[0]}) {symbol.op} ({sides[1]}))"


def _tidy(found: Expression) -> Expression:
    """``(n + B - 1) / B`` and ``(n + 15) / 16`` written as ``cdiv``."""
    text = str(found)
    match = re.fullmatch(r"\((.+) \+ (\w+) - 1\) / \2", text)
    rounded = match and f"cdiv({match[1]}, {match[2]})"
    match = re.fullmatch(r"\((.+) \+ (\d+)\) / (\d+)", text)
    if match and int(match[2]) + 1 == int(match[3]):
        rounded = f"cdiv({match[1]}, {match[3]})"
    try:
        return parse_expression(rounded or text)
    except SourceError:  # what stood around the match was part of it
        return parse_expression(text)
