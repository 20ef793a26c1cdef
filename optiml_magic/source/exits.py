"""Branches by which threads leave a kernel early, read from its text.

The compiler joins equal ends, and then ``if (c) { out = v; return; } __syncthreads(); out = v;``
and ``if (!c) __syncthreads(); out = v;`` are the same PTX. The text tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from optiml_magic.errors import SourceError
from optiml_magic.source.syntax import Syntax, line_of, parse

_BARRIER = re.compile(r"sync|bar", re.IGNORECASE)
_RETURN = re.compile(r"\breturn\b")


def early_returns(text: str) -> tuple[int, ...]:
    """The 1-based lines of each ``if`` or ``switch`` of a kernel with a side that ends in a return.

    All lines of the condition, since each of its parts may be a branch of its own. One that holds
    what may be a barrier is left out: its threads may be meant to meet there.
    """
    if not _RETURN.search(text):
        return ()
    try:
        syntax = parse(text)
    except SourceError:
        return ()
    found = {
        line for kernel in syntax.kernels() for node in _branches(kernel) if _returns(syntax, node)
        for line in range(line_of(node), _last_line(node) + 1)
    }  # fmt: skip
    return tuple(sorted(found))


def _branches(node: Node) -> Iterator[Node]:
    """Those of a kernel itself: a lambda returns to it."""
    stack = [node]
    while stack:
        current = stack.pop()
        if current.type in ("if_statement", "switch_statement"):
            yield current
        stack += [child for child in current.children if child.type != "lambda_expression"]


def _returns(syntax: Syntax, node: Node) -> bool:
    sides = [node.child_by_field_name(name) for name in ("consequence", "alternative", "body")]
    found = [side for side in sides if side is not None]
    if node.type == "switch_statement":
        found = [case for body in found for case in body.named_children]
    return any(map(_ends, found)) and not _BARRIER.search(syntax.source(node))


def _ends(node: Node) -> bool:
    """Whether the last statement is a return."""
    while node.type in ("compound_statement", "else_clause", "case_statement"):
        inner = [child for child in node.named_children if child.type != "comment"]
        if not inner:
            return False
        node = inner[-1]
    return node.type == "return_statement"


def _last_line(node: Node) -> int:
    condition = node.child_by_field_name("condition")
    return line_of(node) if condition is None else int(condition.end_point[0]) + 1
