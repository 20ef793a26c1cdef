"""Loops from 0 counted from 1, with ``k - 1`` for ``k`` in their bodies."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    bare,
    changed,
    field,
    loops,
    operator,
    repeated,
    replace,
    src,
    walk,
)


def _step(syntax: Syntax) -> list[Edit]:
    for loop in loops(syntax):
        condition = bare(loop.condition)
        if src(loop.start) != "0" or not loop.by_one or condition.type != "binary_expression":
            continue
        left, right = field(condition, "left"), field(condition, "right")
        if src(left) != loop.counter or operator(condition) not in ("<", "<="):
            continue
        if loop.counter in changed(loop.body):
            continue
        uses = [n for n in walk(loop.body) if n.type == "identifier" and src(n) == loop.counter]
        end = {"<": f"<= {src(right)}", "<=": f"<= {src(right)} + 1"}[operator(condition)]
        return [
            replace(loop.start, "1"),
            replace(condition, f"{loop.counter} {end}"),
            *[replace(n, f"({loop.counter} - 1)") for n in uses],
        ]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
