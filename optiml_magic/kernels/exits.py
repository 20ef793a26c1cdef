"""Where threads leave a kernel early, read from its text.

The compiler joins equal ends, and then ``if (c) { out = v; return; } __syncthreads(); out = v;``
and ``if (!c) __syncthreads(); out = v;`` are the same PTX. The text tells them apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from tree_sitter import Node

from optiml_magic.kernels.unit import Unit
from optiml_magic.source.syntax import Syntax

_BARRIER = re.compile(r"sync|bar", re.IGNORECASE)
_RETURN = re.compile(r"\breturn\b")
_BRANCHES = frozenset(
    {"if_statement", "switch_statement", "for_statement", "while_statement", "do_statement"}
)


def early_returns(unit: Unit) -> tuple[int, ...]:
    """The 1-based lines of the branches and loops of each kernel by which threads leave it.

    These have a return in them and nothing that may be a barrier: who goes through them reaches
    what follows, or the end. The compiler may merge the conditions of one inside another, so all
    lines count but those on which a branch with a barrier in it begins.
    """
    syntax = unit.syntax
    lines: set[int] = set()
    doubtful: set[int] = set()
    for node in (branch for kernel in syntax.kernels() for branch in _branches(kernel)):
        its_lines = unit.lines(node.start_byte, node.end_byte)
        if _BARRIER.search(syntax.source(node)):
            doubtful.add(its_lines.start)
        elif _leaves(syntax, node):
            lines |= set(its_lines)
    return tuple(sorted(lines - doubtful))


def _branches(node: Node) -> Iterator[Node]:
    return (found for found in _own(node) if found.type in _BRANCHES)


def _leaves(syntax: Syntax, node: Node) -> bool:
    if not _RETURN.search(syntax.source(node)):
        return False
    return any(found.type == "return_statement" for found in _own(node))


def _own(node: Node) -> Iterator[Node]:
    """What is below a node; a lambda returns to it, and not from it."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack += [child for child in current.children if child.type != "lambda_expression"]
