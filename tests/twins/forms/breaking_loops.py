"""``for (;;)`` that is left by a ``break`` at its head."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    function_of,
    inside,
    loops,
    negation,
    repeated,
    replace,
    src,
    types,
)


def _step(syntax: Syntax) -> list[Edit]:
    for loop in loops(syntax):
        over = negation(loop.condition, types(function_of(loop.node)))
        text = (
            f"for ({loop.type} {loop.counter} = {src(loop.start)};; {src(loop.update)}) {{\n"
            f"if ({over}) break;\n{inside(loop.body)}\n}}"
        )
        return [replace(loop.node, text)]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
