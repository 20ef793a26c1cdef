"""Numbers of a kernel that are given a name."""

from __future__ import annotations

from collections.abc import Callable

from optiml_magic.source.syntax import parse, walk

from .tree import edited, functions, replace, src, with_prelude


def named(text: str, name: str, define: Callable[[str, str], str]) -> str | None:
    """Every whole number from 2 on as ``name`` with the number in it, defined above."""
    found: dict[str, str] = {}
    made = []
    for function in functions(parse(text)):
        for node in walk(function):
            if node.type == "number_literal" and src(node).isdigit() and int(src(node)) > 1:
                found[src(node)] = name.format(src(node))
                made.append(replace(node, found[src(node)]))
    changed = edited(text, made)
    if changed is None:
        return None
    return with_prelude(changed, *(define(said, value) for value, said in found.items()))
