"""Directive expressions as C++ that computes what ``Expression.evaluate`` does, in 64 bits.

Beyond 64 bits ``evaluate`` refuses and C++ wraps: the one difference.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

from optiml_magic.errors import SourceError
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
from optiml_magic.source.operators import BINARY, SIZES

_INT = range(-(2**31), 2**31)
_LOGICAL = ("||", "&&", "==", "!=", "<", "<=", ">", ">=")
_TOP = len(BINARY) + 1


@dataclass(frozen=True)
class _Text:
    """C++ text: whether it is 64 bits wide, and how tightly it binds."""

    text: str
    wide: bool
    level: int = _TOP

    def at(self, lowest: int) -> str:
        return self.text if self.level >= lowest else f"({self.text})"


@dataclass(frozen=True)
class CExpressions:
    """Spells expressions.

    ``scalars`` are the 64-bit variables of the scalars, ``extents`` those of shapes and sizes (axis
    None), ``tuned`` the values of the fixed names; those in ``spelled`` are written as names.
    ``functions`` are the names of ``cdiv min max nonzero shift`` here; ``used`` collects those that
    were needed.
    """

    scalars: Mapping[str, str]
    tuned: Mapping[str, int]
    extents: Mapping[tuple[str, int | None], str]
    functions: Mapping[str, str]
    flag: str
    spelled: Container[str]
    used: set[str] = field(default_factory=set)

    def text(self, expression: Expression | Node) -> str:
        """The expression as C++."""
        node = expression.tree if isinstance(expression, Expression) else expression
        return self._spelled(node).text

    def _spelled(self, node: Node) -> _Text:
        match node:
            case Number(value):
                text = str(value) if value in _INT else f"{value}LL"
                return _Text(text, value not in _INT, _TOP if value >= 0 else _TOP - 1)
            case Name(name) if name in self.tuned and name not in self.spelled:
                return self._spelled(Number(self.tuned[name]))
            case Name(name) if name in self.tuned:
                return _Text(name, self.tuned[name] not in _INT)
            case Name(name):
                return _Text(self.scalars[name], wide=True)
            case Unary("!", operand):
                return _Text(f"!{self._spelled(operand).at(_TOP)}", wide=False, level=_TOP - 1)
            case Unary(op, operand):
                inner = self._operand(operand, safe=self._is_int(node))
                return _Text(f"{op}{inner.at(_TOP)}", inner.wide, _TOP - 1)
            case Binary("<<" | ">>", _, _):
                return self._shift(node)
            case Binary(op, left, right):
                return self._binary(op, left, right, node)
            case Choice(condition, then, otherwise):
                parts = [self._spelled(part) for part in (condition, then, otherwise)]
                text = " ? ".join([parts[0].at(1), f"{parts[1].at(1)} : {parts[2].at(1)}"])
                return _Text(text, parts[1].wide or parts[2].wide, 0)
            case Call("sizeof", (Name(spelled),)):
                return _Text(str(SIZES[spelled]), wide=False)
            case Call("size", (Name(array),)):
                return _Text(self.extents[array, None], wide=True)
            case Call("shape", (Name(array), axis)):
                return _Text(self.extents[array, Expression(axis, "").evaluate(self.tuned)], True)
            case Call(function, parts):
                texts = [self._spelled(part).text for part in parts]
                return self._call(function, *texts, *([self.flag] if function == "cdiv" else []))
        raise AssertionError(node)

    def _binary(self, op: str, left: Node, right: Node, whole: Node) -> _Text:
        level = BINARY[op]
        # C++ compilers warn where && stands bare in ||, and bits beside comparisons.
        inside = level if op in ("*", "+", "-") else level + (op not in ("&&", "||"))
        a, b = self._spelled(left), self._spelled(right)
        if op in ("&&", "||"):
            inside = BINARY["|"]
        if op in ("/", "%"):
            divisor = self._constant(right)
            if divisor is None or divisor == 0:
                b = self._call("nonzero", b.text, self.flag)
        if op in _LOGICAL:
            return _Text(f"{a.at(inside)} {op} {b.at(max(inside, level + 1))}", False, level)
        if not a.wide and not b.wide and not self._is_int(whole):
            a = _widened(a)
        text = f"{a.at(inside)} {op} {b.at(level + 1)}"
        return _Text(text, a.wide or b.wide, level)

    def _shift(self, node: Binary) -> _Text:
        level = BINARY[node.op]
        count = self._constant(node.right)
        narrow = self._is_int(node) and count is not None and count < 32
        a = self._operand(node.left, safe=narrow)
        b = self._spelled(node.right)
        if count is None or not 0 <= count < 64:
            b = self._call("shift", b.text, self.flag)
        return _Text(f"{a.at(level + 1)} {node.op} {b.at(level + 1)}", a.wide, level)

    def _operand(self, node: Node, *, safe: bool) -> _Text:
        spelled = self._spelled(node)
        return spelled if spelled.wide or safe else _widened(spelled)

    def _call(self, function: str, *arguments: str) -> _Text:
        self.used.add(function)
        return _Text(f"{self.functions[function]}({', '.join(arguments)})", wide=True)

    def _is_int(self, node: Node) -> bool:
        """Whether it is constant and fits C's ``int``."""
        value = self._constant(node)
        return value is not None and value in _INT

    def _constant(self, node: Node) -> int | None:
        """Its value, where it follows from the tuned names alone."""
        expression = Expression(node, "")
        if expression.names - self.tuned.keys() or expression.arrays:
            return None
        try:
            return expression.evaluate(self.tuned)
        except SourceError:  # it stands in a branch that is not taken
            return None


def _widened(text: _Text) -> _Text:
    return _Text(f"(long long){text.at(_TOP)}", wide=True, level=_TOP - 1)
