"""Expressions of directives with what is a number by itself as that number."""

from __future__ import annotations

from collections.abc import Callable

from optiml_magic.source.expressions import Binary, Call, Expression, Node, Number, Unary
from optiml_magic.source.operators import apply_binary

_EXTREMES: dict[str, Callable[[list[int]], int]] = {"min": min, "max": max}


def folded(expression: Expression) -> Expression:
    """``(n + 4 * 32 - 1) / (4 * 32)`` as ``(n + 128 - 1) / 128``; nothing negative is made."""
    tree = _folded(expression.tree)
    if tree == expression.tree:
        return expression
    return Expression(tree, str(Expression(tree, "")), expression.line)


def _folded(node: Node) -> Node:
    match node:
        case Unary(op, operand):
            return Unary(op, _folded(operand))
        case Binary(op, left, right):
            sides = _folded(left), _folded(right)
            match op, sides:
                case ("+" | "*", (Number(one), Number(other))):
                    return Number(apply_binary(op, one, other))
                case ("-" | "/", (Number(one), Number(other))) if one >= other > 0:
                    return Number(apply_binary(op, one, other))
            return Binary(op, *sides)
        case Call(function, parts) if function not in ("sizeof", "size", "shape"):
            own = tuple(map(_folded, parts))
            numbers = [part.value for part in own if isinstance(part, Number)]
            if function in _EXTREMES and len(numbers) == len(own):
                return Number(_EXTREMES[function](numbers))
            return Call(function, own)
        case _:
            return node
