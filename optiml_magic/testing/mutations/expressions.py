"""Wrong operators, comparisons, constants and functions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tree_sitter import Node

from optiml_magic.testing.mutations.base import Change, Function, operator_of, replaced, within

_BOUNDARY = {"<": "<=", "<=": "<", ">": ">=", ">=": ">"}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_ARITHMETIC = {"+": "-", "-": "+", "*": "+", "/": "*", "%": "/"}
_LOGICAL = {"&&": "||", "||": "&&"}
_BITWISE = {"&": "|", "|": "&", "^": "|", "<<": ">>", ">>": "<<"}
_COMPOUND = {
    "+=": "-=", "-=": "+=", "*=": "/=", "/=": "*=", "<<=": ">>=", ">>=": "<<=", "^=": "|=",
    "|=": "&=", "&=": "|=",
}  # fmt: skip
_ALIKE = {
    "fmaxf": "fminf", "fminf": "fmaxf", "fmax": "fmin", "fmin": "fmax", "max": "min", "min": "max",
    "sinf": "cosf", "cosf": "sinf", "floorf": "ceilf", "ceilf": "floorf", "expf": "exp2f",
    "logf": "log2f", "sqrtf": "fabsf", "rsqrtf": "sqrtf", "fabsf": "-", "__popc": "__clz",
    "__ffs": "__popc", "__fadd_rn": "__fsub_rn", "__fmul_rn": "__fadd_rn", "__float2int_rn":
    "__float2int_rz", "sqrt": "fabs", "exp": "exp2", "__hadd": "__hsub", "__hmul": "__hadd",
}  # fmt: skip
_INTEGER = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)")
_ZERO = re.compile(r"0*\.?0*(?:[eE][-+]?\d+)?[fF]?")
_FLOAT = re.compile(r"(\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+)([fF]?)")


def _swapped(node: Node, function: Function, table: Mapping[str, str]) -> Iterator[Change]:
    token = operator_of(node) if node.type == "binary_expression" else None
    if token is not None and function.text(token) in table:
        yield replaced(token, table[function.text(token)])


def off_by_one_comparison(function: Function, node: Node) -> Iterator[Change]:
    """``i < n`` becomes ``i <= n``."""
    yield from _swapped(node, function, _BOUNDARY)


def opposite_comparison(function: Function, node: Node) -> Iterator[Change]:
    """``i < n`` becomes ``i >= n``."""
    yield from _swapped(node, function, _OPPOSITE)


def wrong_arithmetic(function: Function, node: Node) -> Iterator[Change]:
    """``a + b`` becomes ``a - b``, ``a * b`` becomes ``a + b``."""
    yield from _swapped(node, function, _ARITHMETIC)


def wrong_logic(function: Function, node: Node) -> Iterator[Change]:
    """``a && b`` becomes ``a || b``."""
    yield from _swapped(node, function, _LOGICAL)


def wrong_bits(function: Function, node: Node) -> Iterator[Change]:
    """``a & b`` becomes ``a | b``, ``a << b`` becomes ``a >> b``."""
    yield from _swapped(node, function, _BITWISE)


def wrong_update(function: Function, node: Node) -> Iterator[Change]:
    """``sum += x`` becomes ``sum -= x``."""
    token = operator_of(node) if node.type == "assignment_expression" else None
    if token is not None and function.text(token) in _COMPOUND:
        yield replaced(token, _COMPOUND[function.text(token)])


def overwritten_sum(function: Function, node: Node) -> Iterator[Change]:
    """``sum += x`` becomes ``sum = x``."""
    token = operator_of(node) if node.type == "assignment_expression" else None
    if token is not None and function.text(token) == "+=":
        yield replaced(token, "=")


def operands_exchanged(function: Function, node: Node) -> Iterator[Change]:
    """``a - b`` becomes ``b - a``, ``a / b`` becomes ``b / a``."""
    token = operator_of(node) if node.type == "binary_expression" else None
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if token is None or function.text(token) not in ("-", "/", "%") or not left or not right:
        return
    yield (
        *replaced(left, f"({function.text(right)})"),
        *replaced(right, f"({function.text(left)})"),
    )


def sign_dropped(function: Function, node: Node) -> Iterator[Change]:
    """``-x`` becomes ``x``, ``!found`` becomes ``found``."""
    if node.type == "unary_expression" and function.text(node.children[0]) in ("-", "!", "~"):
        yield replaced(node.children[0], "")


def branches_exchanged(function: Function, node: Node) -> Iterator[Change]:
    """``c ? a : b`` becomes ``c ? b : a``."""
    one, two = node.child_by_field_name("consequence"), node.child_by_field_name("alternative")
    if node.type == "conditional_expression" and one and two:
        yield (
            *replaced(one, f"({function.text(two)})"),
            *replaced(two, f"({function.text(one)})"),
        )


def wrong_function(function: Function, node: Node) -> Iterator[Change]:
    """``fmaxf`` becomes ``fminf``, ``sinf`` becomes ``cosf``."""
    called = node.child_by_field_name("function") if node.type == "call_expression" else None
    if called is not None and function.text(called) in _ALIKE:
        yield replaced(called, _ALIKE[function.text(called)])


def wrong_constant(function: Function, node: Node) -> Iterator[Change]:
    """A whole number becomes the next; a fraction grows by a thousandth. Not of initial values."""
    if node.type != "number_literal" or _is_extent(node) or _is_initial(node):
        return
    text = function.text(node)
    if whole := _INTEGER.fullmatch(text):
        if whole[1].lower().startswith("0x"):
            return  # masks have an operator of their own
        yield replaced(node, f"{int(whole[1]) + 1}{whole[2]}")
    elif number := _FLOAT.fullmatch(text):
        value = float(number[1])
        yield replaced(node, f"{1.001 * value if value else 0.001!r}{number[2]}")


def wrong_initial_value(function: Function, node: Node) -> Iterator[Change]:
    """What starts at 0 starts at 1, anything else at 0. Not of the counters of loops."""
    value = node.child_by_field_name("value") if node.type == "init_declarator" else None
    declarator = node.child_by_field_name("declarator")
    if value is None or declarator is None or declarator.type != "identifier":
        return
    if node.parent is not None and node.parent.parent is not None and (
        node.parent.parent.type == "for_statement"
    ):  # fmt: skip
        return
    text = function.text(value)
    simple = value.type in ("number_literal", "true", "false") or text.lstrip("-").isidentifier()
    if not simple or text in function.types:
        return
    is_zero = bool(_ZERO.fullmatch(text)) or text == "false"
    yield replaced(value, "1" if is_zero else "0")


def _is_initial(node: Node) -> bool:
    parent = node.parent
    return parent is not None and parent.type == "init_declarator"


def _is_extent(node: Node) -> bool:
    """Whether a number is a type's or an array's rather than of a computation."""
    return within(node, "array_declarator", "template_argument_list", "launch_bounds")
