"""The conditions under which the statements of a kernel run, and its stores to global memory."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from optiml_magic.source.expressions import Binary, Expression, Number, parse_expression
from optiml_magic.source.formals import text_of
from optiml_magic.source.indices import bare
from optiml_magic.source.pointers import Pointers
from optiml_magic.source.syntax import walk

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tree_sitter import Node

    from optiml_magic.source.formals import Formal
    from optiml_magic.source.indices import Index, Indices
    from optiml_magic.source.values import Values

Bound: TypeAlias = "tuple[Index, Expression | None]"
_LOOPS = frozenset({"for_statement", "while_statement"})
_LEAVES = frozenset({"return_statement", "continue_statement"})
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
_READERS = ("__ld", "printf", "assert", "__prefetch")
_NAMES = frozenset({"identifier", "field_identifier", "type_identifier"})
_CASTS = frozenset({"reinterpret_cast", "static_cast", "const_cast"})


def callee(function: Node | None) -> str:
    """The bare name of what is called, without scope and template arguments."""
    while function is not None and function.type not in _NAMES:
        inner = function.child_by_field_name("name") or function.child_by_field_name("field")
        if inner is None:
            return ""
        function = inner
    return text_of(function)


def guards_of(store: Node, body: Node, indices: Indices, values: Values) -> Iterator[Bound]:
    """The upper bounds that hold wherever ``store`` runs."""
    node = store
    while node != body and node.parent is not None:
        parent = node.parent
        if parent.type in ("if_statement", *_LOOPS):
            condition = parent.child_by_field_name("condition")
            part = "consequence" if parent.type == "if_statement" else "body"
            inside = parent.child_by_field_name(part)
            if condition is not None and inside == node:
                yield from _holding(condition, indices, values, negated=False)
        elif parent.type == "compound_statement":
            for sibling in parent.named_children:
                if sibling.start_byte >= node.start_byte:
                    break
                yield from _early_exit(sibling, indices, values)
        node = parent


def stores(body: Node, formals: Sequence[Formal]) -> Iterator[Node]:
    """The statements that write, or may write, memory that a parameter leads to."""
    pointers = Pointers(formals, body)
    constant = {formal.name for formal in formals if formal.const}
    for node in walk(body):
        if node.type == "assignment_expression":
            target = node.child_by_field_name("left")
        elif node.type == "update_expression":
            target = node.child_by_field_name("argument")
        elif node.type == "call_expression":
            listed = node.child_by_field_name("arguments")
            name = callee(node.child_by_field_name("function"))
            arguments = listed.named_children if listed is not None else []
            passed = set().union(*(pointers.held(argument) for argument in arguments))
            if passed - constant and not name.startswith(_READERS) and name not in _CASTS:
                yield node
            continue
        elif node.type == "gnu_asm_expression":
            if pointers.mentioned(node) - constant:
                yield node
            continue
        else:
            continue
        if target is not None and pointers.places(target):
            yield node


def _early_exit(node: Node, indices: Indices, values: Values) -> Iterator[Bound]:
    """What ``if (i >= n) return;`` leaves to hold below it."""
    if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
        return
    inside = node.child_by_field_name("consequence")
    if inside is not None and inside.type == "compound_statement" and inside.named_children:
        inside = inside.named_children[-1]
    condition = node.child_by_field_name("condition")
    if inside is not None and inside.type in _LEAVES and condition is not None:
        yield from _holding(condition, indices, values, negated=True)


def _holding(node: Node, indices: Indices, values: Values, *, negated: bool) -> Iterator[Bound]:
    """The bounds among the conjuncts of a condition, or of the negation of one."""
    stack = [(node, negated)]
    while stack:
        current, negative = stack.pop()
        current = bare(current)
        if current.type == "condition_clause":
            value = current.child_by_field_name("value")
            stack += [(value, negative)] if value is not None else []
        elif current.type == "unary_expression" and text_of(current).startswith("!"):
            argument = current.child_by_field_name("argument")
            stack += [(argument, not negative)] if argument is not None else []
        elif current.type == "binary_expression":
            operator = text_of(current.child_by_field_name("operator"))
            if operator == ("||" if negative else "&&"):
                sides = [current.child_by_field_name(side) for side in ("left", "right")]
                stack += [(side, negative) for side in sides if side is not None]
            else:
                yield from _comparison(current, indices, values, negated=negative)


def _comparison(node: Node, indices: Indices, values: Values, *, negated: bool) -> Iterator[Bound]:
    """The bound that one comparison puts on an index from above, if it does."""
    operator = text_of(node.child_by_field_name("operator"))
    left, right = (node.child_by_field_name(side) for side in ("left", "right"))
    if operator not in _MIRRORED or left is None or right is None:
        return
    for side, bound, written in ((left, right, operator), (right, left, _MIRRORED[operator])):
        holds = _NEGATED[written] if negated else written
        index = indices.of(side)
        if index is None:
            continue
        if holds in ("<", "<="):
            extent = values.expression(bound)
            yield index, _incremented(extent) if holds == "<=" and extent is not None else extent
        elif holds == "==" and index.grid is None and bound.type == "number_literal":
            yield replace(index, steps=True), None  # one thread alone: however many there are


def _incremented(extent: Expression) -> Expression:
    """One more: ``n - 1`` to ``n``."""
    match extent.tree:
        case Binary("-", left, Number(1)):
            return parse_expression(str(Expression(left, "")))
    return parse_expression(f"({extent}) + 1")
