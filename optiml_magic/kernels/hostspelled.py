"""What a launch passes that is not a name, ``mat.rows``, under the name of the task for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.kernels.hostchanges import set_once, target
from optiml_magic.kernels.hostvalues import RESIZED
from optiml_magic.source.formals import text_of
from optiml_magic.source.syntax import nodes_of, walk
from optiml_magic.source.values import changes

if TYPE_CHECKING:
    from tree_sitter import Node

    from optiml_magic.kernels.hostvalues import HostValues


def spell(values: HostValues, node: Node, name: str) -> None:
    """Take ``name`` in these values for what is spelled like a node, where nothing of that changes.

    A member that is set once, from another that stays, stands for that one, too.
    """
    if node.type not in ("field_expression", "call_expression"):
        return
    roots = {text_of(n) for n in walk(node) if n.type == "identifier"}
    mutated = {found[1] for found in RESIZED.finditer(text_of(values.body))}
    if roots & mutated or any(values.declared.get(root, 1) != 1 for root in roots):
        return
    places = [n for root, n in changes(values.body) if root in roots]
    if node.type == "call_expression" and places:
        return
    own, written = text_of(node), [n for n in places if target(n) == text_of(node)]
    if any(target(n) in roots for n in places):
        return
    right = set_once(written, values.body) if written else values.members.get(own)
    if written:
        first = next(n for n in nodes_of(values.body) if text_of(n) == own)
        if right is None or first.start_byte != written[0].start_byte:
            return  # before it is set there, it is something else
    if right is not None:
        if right.type == "field_expression":
            others = {text_of(n) for n in walk(right) if n.type == "identifier"}
            if not others & values.changed:
                values.spelled.setdefault(text_of(right), name)
        elif right.type == "identifier" and own in values.members:
            values.spelled.setdefault(text_of(right), name)
    values.spelled[own] = name
