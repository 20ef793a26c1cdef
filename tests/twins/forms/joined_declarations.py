"""Declarations of the same type that follow one another as one."""

from __future__ import annotations

from tests.twins.tree import Edit, Syntax, names, repeated, src, walk


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        follower = node.next_named_sibling
        if node.type != "declaration" or follower is None or follower.type != "declaration":
            continue
        both = [*names(node), *names(follower)]
        plain = all(n.kind == "scalar" and not n.constant for n in both)
        if plain and len({n.type for n in both}) == 1 and "__shared__" not in src(node):
            more = ", ".join(src(n.declarator) for n in names(follower))
            return [Edit(node.end_byte - 1, follower.end_byte, f", {more};")]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
