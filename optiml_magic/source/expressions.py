"""The integer expressions of directives: C's operators, evaluated in signed 64 bits.

Literal suffixes are read and dropped: ``n - 1u`` is -1 for ``n = 0``, where C would wrap around.
What does not fit 64 bits is refused instead of wrapped. Never Python's ``eval``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING

from optiml_magic.errors import SourceError, nearest
from optiml_magic.source.operators import BINARY, FUNCTIONS, SIZES, apply_binary, apply_function

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_LENGTH = 4000
_MAX_NESTING = 40
_MAX_HEIGHT = 150
_LIMIT = 2**63
_NO_SHAPES: Mapping[str, tuple[int, ...]] = MappingProxyType({})
_TOKEN = re.compile(
    r"\s*(?:(?P<number>\d\w*)|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<op>\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%<>!~&|^?:(),])|(?P<bad>\S))",
    re.ASCII,
)
_NUMBER = re.compile(
    r"(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)(?:[uU](?:ll|LL|[lL])?|(?:ll|LL|[lL])[uU]?)?", re.ASCII
)


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Name:
    name: str


@dataclass(frozen=True)
class Unary:
    op: str
    operand: Node


@dataclass(frozen=True)
class Binary:
    op: str
    left: Node
    right: Node


@dataclass(frozen=True)
class Choice:
    condition: Node
    then: Node
    otherwise: Node


@dataclass(frozen=True)
class Call:
    """``cdiv min max``, ``size(array)``, ``shape(array, axis)`` or ``sizeof(type)``."""

    function: str
    arguments: tuple[Node, ...]


Node = Number | Name | Unary | Binary | Choice | Call


@dataclass(frozen=True)
class Expression:
    """A parsed expression; two are equal when their trees are, however they were typed."""

    tree: Node
    text: str = field(compare=False)
    line: int | None = field(default=None, compare=False)

    @property
    def names(self) -> frozenset[str]:
        """The scalars, tuned names and ``sm_count`` that it reads."""
        return frozenset(name for name, is_array in _mentions(self.tree) if not is_array)

    @property
    def arrays(self) -> frozenset[str]:
        """The arrays whose ``size`` or ``shape`` it reads."""
        return frozenset(name for name, is_array in _mentions(self.tree) if is_array)

    @property
    def name(self) -> str | None:
        """The name, where the whole expression is one."""
        return self.tree.name if isinstance(self.tree, Name) else None

    def evaluate(
        self, env: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]] = _NO_SHAPES
    ) -> int:
        """The value; only the branch taken of ``?: && ||`` is evaluated, as in C."""
        try:
            return _evaluate(self.tree, env, shapes)
        except SourceError as error:
            raise SourceError(
                f"{error.message} in `{self}`", fix=error.fix, line=self.line
            ) from None

    def substituted(self, values: Mapping[str, int]) -> Expression:
        """The expression with these names replaced by their values."""
        tree = _substituted(self.tree, values)
        return Expression(tree, _print(tree), self.line)

    def __str__(self) -> str:
        return _print(self.tree)


@lru_cache(maxsize=4096)
def parse_expression(text: str, line: int | None = None) -> Expression:
    """The expression that ``text`` holds, or a SourceError at its column."""
    if len(text) > _MAX_LENGTH:
        raise SourceError(
            f"an expression of {len(text)} characters",
            fix=f"keep an expression below {_MAX_LENGTH} characters",
            line=line,
        )
    tree = _Parser(text, line).whole()
    return Expression(tree, text.strip(), line)


class _Parser:
    """Precedence climbing over the tokens of one text."""

    def __init__(self, text: str, line: int | None) -> None:
        self.text = text
        self.line = line
        self.tokens = [(m.lastgroup or "", m[m.lastgroup or 0], m.start(m.lastgroup or 0))
                       for m in _TOKEN.finditer(text)]  # fmt: skip
        self.at = 0
        self.nesting = 0
        self.heights: dict[int, int] = {}

    def whole(self) -> Node:
        tree = self.choice()
        if self.at < len(self.tokens):
            raise self.error(f"unexpected `{self.peek()}`")
        return tree

    def error(self, message: str, fix: str = "") -> SourceError:
        at = self.tokens[self.at][2] if self.at < len(self.tokens) else len(self.text.rstrip())
        shown = self.text.strip() if len(self.text) <= 80 else self.text.strip()[:77] + "..."
        return SourceError(
            f"{message} at column {at + 1} of `{shown}`",
            fix=fix or "write C integer arithmetic, such as `cdiv(n, 256)` or `(n + 255) / 256`",
            line=self.line,
        )

    def peek(self) -> str:
        return self.tokens[self.at][1] if self.at < len(self.tokens) else ""

    def take(self, token: str) -> bool:
        if self.peek() != token:
            return False
        self.at += 1
        return True

    def expect(self, token: str) -> None:
        if not self.take(token):
            found = f"`{self.peek()}`" if self.peek() else "the end"
            raise self.error(f"`{token}` expected, {found} found")

    def enter(self) -> None:
        self.nesting += 1
        if self.nesting > _MAX_NESTING:
            raise self.error("too deep a nesting", f"nest at most {_MAX_NESTING} levels")

    def built(self, node: Node, *parts: Node) -> Node:
        """``node``, once its tree is known to be low enough to walk by recursion."""
        height = 1 + max(self.heights.get(id(part), 0) for part in parts)
        if height > _MAX_HEIGHT:
            raise self.error("too many operators in a row", f"use at most {_MAX_HEIGHT}")
        self.heights[id(node)] = height
        return node

    def choice(self) -> Node:
        self.enter()
        node = self.binary(1)
        if self.take("?"):
            then = self.choice()
            self.expect(":")
            otherwise = self.choice()
            node = self.built(Choice(node, then, otherwise), node, then, otherwise)
        self.nesting -= 1
        return node

    def binary(self, lowest: int) -> Node:
        left = self.unary()
        while (level := BINARY.get(self.peek(), 0)) >= lowest:
            op = self.peek()
            self.at += 1
            right = self.binary(level + 1)
            left = self.built(Binary(op, left, right), left, right)
        return left

    def unary(self) -> Node:
        op = self.peek()
        if op not in ("-", "+", "!", "~") or self.tokens[self.at][0] != "op":
            return self.primary()
        self.at += 1
        self.enter()
        operand = self.unary()
        self.nesting -= 1
        return operand if op == "+" else self.built(Unary(op, operand), operand)

    def primary(self) -> Node:
        if self.at >= len(self.tokens):
            raise self.error("an operand is missing")
        kind, token, _ = self.tokens[self.at]
        if kind == "number":
            return self.number(token)
        if kind == "name":
            self.at += 1
            return self.call(token) if self.peek() == "(" else Name(token)
        if self.take("("):
            node = self.choice()
            self.expect(")")
            return node
        raise self.error(f"unexpected `{token}`")

    def number(self, token: str) -> Node:
        match = _NUMBER.fullmatch(token)
        if match is None or (len(match[1]) > 1 and match[1].isdigit() and match[1][0] == "0"):
            if match is not None:
                raise self.error(f"`{token}` is octal in C", f"write `{token.lstrip('0') or 0}`")
            raise self.error(f"`{token}` is not an integer")
        if len(match[1]) > 66 or int(match[1], 0) >= _LIMIT:
            raise self.error("a number beyond 64 bits", "use a number below 2**63")
        self.at += 1
        return Number(int(match[1], 0))

    def call(self, function: str) -> Node:
        if function not in FUNCTIONS:
            self.at -= 1
            known = ", ".join(sorted(FUNCTIONS))
            raise self.error(f"no function `{function}`", nearest(function, FUNCTIONS)
                             or f"use one of {known}")  # fmt: skip
        self.expect("(")
        arguments = [self.type_name() if function == "sizeof" else self.choice()]
        while self.take(","):
            arguments.append(self.choice())
        if len(arguments) != FUNCTIONS[function]:
            raise self.error(
                f"`{function}` takes {FUNCTIONS[function]} arguments, not {len(arguments)}"
            )
        if function in ("size", "shape") and not isinstance(arguments[0], Name):
            raise self.error(f"`{function}` asks for the name of an array")
        self.expect(")")
        return self.built(Call(function, tuple(arguments)), *arguments)

    def type_name(self) -> Node:
        words = []
        while self.at < len(self.tokens) and self.tokens[self.at][0] == "name":
            words.append(self.peek())
            self.at += 1
        spelled = " ".join(words)
        if spelled not in SIZES:
            self.at -= bool(words)
            raise self.error(f"the size of `{spelled}` is not known", nearest(spelled, SIZES)
                             or "write the number of bytes")  # fmt: skip
        return Name(spelled)


def _mentions(node: Node) -> frozenset[tuple[str, bool]]:
    match node:
        case Number() | Call("sizeof"):
            return frozenset()
        case Name(name):
            return frozenset({(name, False)})
        case Call("size" | "shape", (Name(name), *rest)):
            return frozenset({(name, True)}).union(*map(_mentions, rest))
        case Call(_, parts):
            return frozenset().union(*map(_mentions, parts))
        case Unary(_, operand):
            return _mentions(operand)
        case Binary(_, left, right):
            return _mentions(left) | _mentions(right)
        case Choice(condition, then, otherwise):
            return _mentions(condition) | _mentions(then) | _mentions(otherwise)


def _substituted(node: Node, values: Mapping[str, int]) -> Node:
    match node:
        case Name(name) if name in values:
            return Number(values[name])
        case Unary(op, operand):
            return Unary(op, _substituted(operand, values))
        case Binary(op, left, right):
            return Binary(op, _substituted(left, values), _substituted(right, values))
        case Choice(condition, then, otherwise):
            parts = [_substituted(part, values) for part in (condition, then, otherwise)]
            return Choice(*parts)
        case Call("size" | "shape" as function, (array, *rest)):
            return Call(function, (array, *(_substituted(part, values) for part in rest)))
        case Call(function, parts) if function != "sizeof":
            return Call(function, tuple(_substituted(part, values) for part in parts))
        case _:
            return node


def _evaluate(node: Node, env: Mapping[str, int], shapes: Mapping[str, tuple[int, ...]]) -> int:
    match node:
        case Number(value):
            result = value
        case Name(name):
            result = _lookup(name, env)
        case Unary(op, operand):
            value = _evaluate(operand, env, shapes)
            result = -value if op == "-" else ~value if op == "~" else int(not value)
        case Binary("&&", left, right):
            result = int(bool(_evaluate(left, env, shapes) and _evaluate(right, env, shapes)))
        case Binary("||", left, right):
            result = int(bool(_evaluate(left, env, shapes) or _evaluate(right, env, shapes)))
        case Binary(op, left, right):
            result = apply_binary(op, _evaluate(left, env, shapes), _evaluate(right, env, shapes))
        case Choice(condition, then, otherwise):
            taken = then if _evaluate(condition, env, shapes) else otherwise
            result = _evaluate(taken, env, shapes)
        case Call("sizeof", (Name(spelled),)):
            result = SIZES[spelled]
        case Call("size" | "shape" as function, (Name(array), *axis)):
            axes = [_evaluate(part, env, shapes) for part in axis]
            result = _extent(function, array, axes, shapes)
        case Call(function, parts):
            result = apply_function(function, [_evaluate(part, env, shapes) for part in parts])
    if not -_LIMIT <= result < _LIMIT:
        raise SourceError("a value beyond 64 bits", fix="keep every intermediate below 2**63")
    return result


def _lookup(name: str, env: Mapping[str, int]) -> int:
    if name in env:
        return int(env[name])
    known = f"use one of {', '.join(sorted(env))}" if env else "write a number"
    raise SourceError(f"unknown name `{name}`", fix=nearest(name, env) or known)


def _extent(
    function: str, array: str, axes: list[int], shapes: Mapping[str, tuple[int, ...]]
) -> int:
    if array not in shapes:
        known = ", ".join(sorted(shapes)) or "none"
        raise SourceError(
            f"unknown array `{array}`", fix=nearest(array, shapes) or f"name an array: {known}"
        )
    shape = shapes[array]
    if function == "shape":
        if not 0 <= axes[0] < len(shape):
            raise SourceError(
                f"`{array}` has no axis {axes[0]}", fix=f"name an axis of its shape, {tuple(shape)}"
            )
        return int(shape[axes[0]])
    count = 1
    for extent in shape:
        count *= int(extent)
    return count


def _print(node: Node, lowest: int = 0) -> str:
    """Canonical text with the fewest parentheses; ``lowest`` is the level the place asks for."""
    match node:
        case Number(value):
            return str(value)
        case Name(name):
            return name
        case Call(function, parts):
            return f"{function}({', '.join(_print(part) for part in parts)})"
        case Unary(op, operand):
            inner = _print(operand, len(BINARY))
            return f"- {inner}" if op == "-" and inner.startswith("-") else op + inner
        case Binary(op, left, right):
            level = BINARY[op]
            text = f"{_print(left, level)} {op} {_print(right, level + 1)}"
            return f"({text})" if level < lowest else text
        case Choice(condition, then, otherwise):
            text = f"{_print(condition, 1)} ? {_print(then)} : {_print(otherwise)}"
            return f"({text})" if lowest > 0 else text
