"""Braces around every single statement."""

from __future__ import annotations

from tests.twins.tree import after, before, edited, parse, walk


def apply(text: str) -> str | None:
    made = []
    for node in walk(parse(text).root):
        for name in ("consequence", "body"):
            body = node.child_by_field_name(name)
            if body is None or not node.type.endswith("_statement"):
                continue
            if body.type != "compound_statement":
                made += [before(body, "{ "), after(body, " }")]
    return edited(text, made)
