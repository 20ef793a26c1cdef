"""Directive expressions as Python that computes what ``Expression.evaluate`` does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from optiml_magic.errors import SourceError
from optiml_magic.exports.base import constant_axis
from optiml_magic.source.expressions import (
    Binary,
    Call,
    Choice,
    Expression,
    Name,
    Node,
    Number,
    Unary,
)
from optiml_magic.source.operators import SIZES

# Python's own precedence: its comparisons chain, and bits bind tighter than they do in C.
_LEVELS = {"|": 5, "^": 6, "&": 7, "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
_CHOICE, _OR, _AND, _NOT, _COMPARISON, _UNARY, _ATOM = 0, 1, 2, 3, 4, 11, 12
_FUNCTIONS = {
    "/": "_divide", "%": "_remainder", "shift": "_shift", "cdiv": "_cdiv", "min": "min",
    "max": "max",
}  # fmt: skip


@dataclass(frozen=True)
class _Text:
    text: str
    level: int = _ATOM

    def at(self, lowest: int) -> str:
        return self.text if self.level >= lowest else f"({self.text})"


@dataclass(frozen=True)
class PythonExpressions:
    """Spells expressions; ``names`` are the variables of scalars and arrays.

    ``used`` collects the module's own functions that were needed, and ``elements`` is how an array
    is asked for the number of its elements.
    """

    names: Mapping[str, str]
    tuned: Mapping[str, int]
    used: set[str] = field(default_factory=set)
    elements: str = "size"

    def text(self, expression: Expression) -> str:
        """The expression as Python, a number."""
        return self._value(expression.tree).text

    def condition(self, expression: Expression) -> str:
        """The expression as Python, for its truth alone."""
        return self._truth(expression.tree).text

    def _value(self, node: Node) -> _Text:
        match node:
            case Number(value):
                return _Text(str(value))
            case Name(name):
                return _Text(self.names[name])
            case Unary("!", _):
                return _Text(f"int({self._truth(node).text})")
            case Binary("&&" | "||", _, _):
                return _Text(f"int(bool({self._truth(node).text}))")
            case Unary(op, operand):
                return _Text(op + self._value(operand).at(_UNARY), _UNARY)
            case Binary(op, _, _) if op in _COMPARISONS:
                return _Text(f"int({self._truth(node).text})")
            case Binary(op, left, right) if op in _LEVELS:
                level, b = _LEVELS[op], self._value(right)
                if op in ("<<", ">>") and not 0 <= self._constant(right) < 64:
                    b = self._call("shift", right)
                return _Text(f"{self._value(left).at(level)} {op} {b.at(level + 1)}", level)
            case Binary("/" | "%" as op, left, right):
                return self._quotient(op, left, right)
            case Binary(op, left, right):
                return self._call(op, left, right)
            case Choice(condition, then, otherwise):
                chosen = f"{self._value(then).at(_OR)} if {self._truth(condition).at(_OR)}"
                return _Text(f"{chosen} else {self._value(otherwise).at(_CHOICE)}", _CHOICE)
            case Call("sizeof", (Name(spelled),)):
                return _Text(str(SIZES[spelled]))
            case Call("size", (Name(array),)):
                return _Text(f"{self.names[array]}.{self.elements}")
            case Call("shape", (Name(array), axis)):
                place = constant_axis(array, axis, self.tuned)
                return _Text(f"{self.names[array]}.shape[{place}]")
            case Call(function, parts):
                return self._call(function, *parts)
        raise AssertionError(node)

    def _truth(self, node: Node) -> _Text:
        match node:
            case Unary("!", operand):
                return _Text(f"not {self._truth(operand).at(_NOT)}", _NOT)
            case Binary("&&" | "||" as op, left, right):
                word, level = ("and", _AND) if op == "&&" else ("or", _OR)
                text = f"{self._truth(left).at(level)} {word} {self._truth(right).at(level + 1)}"
                return _Text(text, level)
            case Binary(op, left, right) if op in _COMPARISONS:
                above = _COMPARISON + 1
                text = f"{self._value(left).at(above)} {op} {self._value(right).at(above)}"
                return _Text(text, _COMPARISON)
            case _:
                return self._value(node)

    def _quotient(self, op: str, left: Node, right: Node) -> _Text:
        # Where neither side can be negative, Python rounds as C does.
        if self._counts(left) and self._constant(right) > 0:
            level = _LEVELS["*"]
            sign = "//" if op == "/" else "%"
            text = f"{self._value(left).at(level)} {sign} {self._value(right).at(level + 1)}"
            return _Text(text, level)
        return self._call(op, left, right)

    def _call(self, function: str, *parts: Node) -> _Text:
        name = _FUNCTIONS[function]
        if name.startswith("_"):
            self.used.add(name)
        return _Text(f"{name}({', '.join(self._value(part).text for part in parts)})")

    def _counts(self, node: Node) -> bool:
        """Whether it is a constant or an extent, and so not below zero."""
        return (isinstance(node, Call) and node.function in ("size", "shape", "sizeof")) or (
            self._constant(node) > 0
        )

    def _constant(self, node: Node) -> int:
        expression = Expression(node, "")
        if expression.names - self.tuned.keys() or expression.arrays:
            return -1
        try:
            return expression.evaluate(self.tuned)
        except SourceError:
            return -1
