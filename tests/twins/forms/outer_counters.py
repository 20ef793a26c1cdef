"""Loop counters declared before their loop."""

from __future__ import annotations

from tests.twins.tree import Edit, Syntax, declared_once, function_of, loops, repeated, replace, src


def _step(syntax: Syntax) -> list[Edit]:
    for loop in loops(syntax):
        parent = loop.node.parent
        text = (
            f"{loop.type} {loop.counter};\nfor ({loop.counter} = {src(loop.start)}; "
            f"{src(loop.condition)}; {src(loop.update)}) {src(loop.body)}"
        )
        alone = declared_once(function_of(loop.node), loop.counter)
        if parent is None or parent.type != "compound_statement" or not alone:
            text = f"{{ {text} }}"
        return [replace(loop.node, text)]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
