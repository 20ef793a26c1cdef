"""No braces around a single statement."""

from __future__ import annotations

from tests.twins.tree import Edit, Syntax, contains, repeated, replace, src, statements, walk


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        if node.type not in ("if_statement", "for_statement", "while_statement", "else_clause"):
            continue
        body = next((c for c in node.named_children if c.type == "compound_statement"), None)
        if body is None or len(statements(body)) != 1 or contains(body, "comment"):
            continue
        (only,) = statements(body)
        # The else of an outer `if` would become that of an inner one.
        if only.type == "declaration" or contains(only, "if_statement"):
            continue
        behind = body.prev_sibling is not None and body.prev_sibling.end_byte == body.start_byte
        return [replace(body, " " * behind + src(only))]  # `else{s` is no `elses`
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
