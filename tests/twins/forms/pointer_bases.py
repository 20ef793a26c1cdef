"""The row that a loop goes along as a pointer to its first element: ``line[k]``."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    before,
    fresh,
    loops,
    repeated,
    replace,
    src,
)
from tests.twins.walking import accesses, pointer


def _step(syntax: Syntax) -> list[Edit]:
    for loop in loops(syntax):
        parent = loop.node.parent
        if parent is None or parent.type != "compound_statement" or src(loop.start) != "0":
            continue
        found = [a for a in accesses(loop) if a.stride == "1" and a.base != "0"]
        if not found:
            continue
        first = found[0]
        name = fresh(f"{first.array.name}_line", syntax)
        same = [a for a in found if (a.array, a.index) == (first.array, first.index)]
        made = [replace(a.node, f"{name}[{loop.counter}]") for a in same]
        return [before(loop.node, pointer(first.array, name, first.base) + "\n"), *made]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
