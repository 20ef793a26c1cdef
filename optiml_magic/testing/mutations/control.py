"""Work that is left out or done too often: guards, loops, tails, statements."""

from __future__ import annotations

from collections.abc import Iterator

from tree_sitter import Node

from optiml_magic.source.syntax import walk
from optiml_magic.testing.mutations.base import Change, Function, bare, operator_of, replaced

_LEAVES = ("return_statement", "break_statement", "continue_statement")


def guard_dropped(_function: Function, node: Node) -> Iterator[Change]:
    """``if (i < n) work`` works always; ``if (i >= n) return`` never returns."""
    condition = node.child_by_field_name("condition") if node.type == "if_statement" else None
    then = node.child_by_field_name("consequence")
    if condition is None or then is None or node.child_by_field_name("alternative") is not None:
        return
    leaves = any(part.type in _LEAVES for part in walk(then))
    yield replaced(bare(condition), "false" if leaves else "true")


def guard_of_a_value_dropped(function: Function, node: Node) -> Iterator[Change]:
    """``i < n ? a[i] : 0`` becomes ``a[i]``."""
    value = node.child_by_field_name("consequence")
    if node.type == "conditional_expression" and value is not None:
        yield replaced(node, f"({function.text(value)})")


def half_of_a_condition(function: Function, node: Node) -> Iterator[Change]:
    """``row < m && col < n`` becomes ``row < m``, and ``col < n``."""
    token = operator_of(node) if node.type == "binary_expression" else None
    if token is None or function.text(token) not in ("&&", "||"):
        return
    for side in ("left", "right"):
        kept = node.child_by_field_name(side)
        if kept is not None:
            yield replaced(node, f"({function.text(kept)})")


def tail_skipped(function: Function, node: Node) -> Iterator[Change]:
    """``i < n`` becomes ``i < n / 4 * 4``, in a loop or a guard."""
    bound = _bound(function, node)
    if bound is not None:
        yield replaced(bound, f"({function.text(bound)}) / 4 * 4")


def loop_cut_short(function: Function, node: Node) -> Iterator[Change]:
    """``i < n`` of a loop becomes ``i < n - 1``."""
    bound = _bound(function, node)
    loop = node.parent
    if bound is not None and loop is not None and loop.type in ("for_statement", "while_statement"):
        yield replaced(bound, f"({function.text(bound)}) - 1")


def loop_starts_late(function: Function, node: Node) -> Iterator[Change]:
    """``int i = 0`` of a loop becomes ``int i = 1``."""
    if node.type != "init_declarator" or node.parent is None or node.parent.parent is None:
        return
    value = node.child_by_field_name("value")
    if value is not None and node.parent.parent.type == "for_statement":
        yield replaced(value, f"({function.text(value)}) + 1")


def loop_steps_too_far(function: Function, node: Node) -> Iterator[Change]:
    """``++i`` of a loop becomes ``i += 2``; ``i += s`` becomes ``i += 2 * (s)``."""
    if node.parent is None or node.parent.type != "for_statement":
        return
    if node != node.parent.child_by_field_name("update"):
        return
    if node.type == "update_expression":
        counter = node.child_by_field_name("argument")
        token = "+=" if "++" in function.text(node) else "-="
        if counter is not None:
            yield replaced(node, f"{function.text(counter)} {token} 2")
    elif node.type == "assignment_expression":
        step = node.child_by_field_name("right")
        if step is not None:
            yield replaced(step, f"2 * ({function.text(step)})")


def loop_left_early(_function: Function, node: Node) -> Iterator[Change]:
    """A loop does its first round alone."""
    body = node.child_by_field_name("body") if node.type == "for_statement" else None
    if body is not None and body.type == "compound_statement":
        closing = body.children[-1]
        yield replaced(closing, "break; }")


def statement_dropped(_function: Function, node: Node) -> Iterator[Change]:
    """An assignment is left out."""
    if node.type == "expression_statement" and node.named_children and (
        node.named_children[0].type in ("assignment_expression", "update_expression")
    ):  # fmt: skip
        yield replaced(node, ";")


def _bound(function: Function, node: Node) -> Node | None:
    """``n`` of ``i < n``, where that is not a number."""
    token = operator_of(node) if node.type == "binary_expression" else None
    if token is None or function.text(token) not in ("<", "<="):
        return None
    bound = node.child_by_field_name("right")
    return bound if bound is not None and bound.type != "number_literal" else None
