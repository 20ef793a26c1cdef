"""Barriers that a text puts into a branch: whoever goes around one there was meant to meet it.

The compiler joins equal ends, and then ``if (c) { out = v; return; } __syncthreads(); out = v;``
and ``if (!c) __syncthreads(); out = v;`` are the same PTX. The text tells them apart.
"""

from __future__ import annotations

import re

from tree_sitter import Node

from optiml_magic.errors import SourceError
from optiml_magic.source.syntax import Syntax, line_of, parse, walk

_BARRIER = re.compile(r"syncthreads|barrier|\bbar\b|\bsync\b|\barrive", re.IGNORECASE)
_BRANCHES = frozenset({"if_statement", "switch_statement", "conditional_expression"})
_CALLS = frozenset({"call_expression", "gnu_asm_expression"})


def in_branches(text: str) -> tuple[int, ...]:
    """The 1-based lines of such calls, in order; a loop is no branch."""
    if not _BARRIER.search(text):
        return ()
    try:
        syntax = parse(text)
    except SourceError:
        return ()
    return tuple(dict.fromkeys(line_of(node) for node in walk(syntax.root) if _is(syntax, node)))


def _is(syntax: Syntax, node: Node) -> bool:
    if node.type not in _CALLS:
        return False
    named = node.child_by_field_name("function") or node
    return bool(_BARRIER.search(syntax.source(named))) and _branched(node)


def _branched(node: Node) -> bool:
    below, above = node, node.parent
    while above is not None and above.type != "function_definition":
        decided = above.child_by_field_name("condition")  # everybody comes there
        if above.type in _BRANCHES and below != decided:
            return True
        below, above = above, above.parent
    return False
