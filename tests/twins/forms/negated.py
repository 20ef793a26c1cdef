"""Conditions as the negation of their opposite: ``if (!(i >= n))``."""

from __future__ import annotations

from tests.twins.tree import (
    condition_of,
    edited,
    function_of,
    negation,
    parse,
    replace,
    types,
    walk,
)

_GUARDED = ("if_statement", "for_statement", "while_statement")


def apply(text: str) -> str | None:
    made = []
    for node in walk(parse(text).root):
        if node.type in _GUARDED and node.child_by_field_name("condition") is not None:
            condition = condition_of(node)
            opposite = negation(condition, types(function_of(node)))
            if not opposite.startswith("!("):
                made.append(replace(condition, f"!({opposite})"))
    return edited(text, made)
