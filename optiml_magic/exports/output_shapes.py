"""The shape in an output's specification, such as ``f4[rows, cols]``."""

from __future__ import annotations

from optiml_magic.source.expressions import Expression, parse_expression


def specified(text: str) -> tuple[Expression, ...]:
    """The extent of each axis; empty where the specification gives none."""
    _, opened, rest = text.partition("[")
    if not opened:
        return ()
    inner = rest.rpartition("]")[0]
    parts, depth, begin = [], 0, 0
    for at, char in enumerate(inner):
        depth += (char in "([") - (char in ")]")
        if char == "," and depth == 0:
            parts.append(inner[begin:at])
            begin = at + 1
    return tuple(parse_expression(part) for part in (*parts, inner[begin:]) if part.strip())
