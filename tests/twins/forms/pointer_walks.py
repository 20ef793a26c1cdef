"""A pointer that the loop moves on with its counter: ``*p``, and ``p += n`` at the step."""

from __future__ import annotations

from tests.twins.tree import Edit, Syntax, after, before, fresh, loops, repeated, replace
from tests.twins.walking import accesses, pointer, steps_by_one


def _step(syntax: Syntax) -> list[Edit]:
    for loop in loops(syntax):
        if not steps_by_one(loop):
            continue
        parent = loop.node.parent
        found = list(accesses(loop))
        if parent is None or parent.type != "compound_statement" or not found:
            continue
        first = found[0]
        name = fresh(f"{first.array.name}_at", syntax)
        same = [a for a in found if (a.array, a.index) == (first.array, first.index)]
        made = [replace(a.node, f"(*{name})") for a in same]
        moved = f", ++{name}" if first.stride == "1" else f", {name} += {first.stride}"
        start = pointer(first.array, name, first.base) + "\n"
        return [before(loop.node, start), after(loop.update, moved), *made]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
