"""``*p++`` where a loop reads the next element once in every round."""

from __future__ import annotations

from tests.twins.tree import Edit, Syntax, before, enclosing, fresh, loops, repeated, replace
from tests.twins.walking import Access, accesses, pointer, steps_by_one


def _always(access: Access) -> bool:
    """Whether the access is made in every round: nothing in the loop's body decides on it."""
    node = access.node.parent
    while node is not None and node.type != "for_statement":
        decides = node.type in ("if_statement", "conditional_expression")
        if decides or (
            node.type == "binary_expression" and {"&&", "||"} & {c.type for c in node.children}
        ):
            return False
        node = node.parent
    return True


def _step(syntax: Syntax) -> list[Edit]:
    for loop in loops(syntax):
        parent = loop.node.parent
        if parent is None or parent.type != "compound_statement" or not steps_by_one(loop):
            continue
        found = list(accesses(loop))
        once = [
            a
            for a in found
            if a.stride == "1"
            and _always(a)
            and sum((a.array, a.index) == (b.array, b.index) for b in found) == 1
            and not _read_and_written(a)
        ]
        if once:
            name = fresh(f"{once[0].array.name}_next", syntax)
            start = pointer(once[0].array, name, once[0].base) + "\n"
            return [before(loop.node, start), replace(once[0].node, f"(*{name}++)")]
    return []


def _read_and_written(access: Access) -> bool:
    """Whether the access is the target of ``+=``, which later forms may spell out as two."""
    change = enclosing(access.node, "assignment_expression")
    return change is not None and change.child_by_field_name("left") == access.node


def apply(text: str) -> str | None:
    return repeated(text, _step)
