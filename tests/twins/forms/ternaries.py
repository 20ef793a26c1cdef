"""``if (x > m) m = x;`` as ``m = x > m ? x : m;``, for locals alone."""

from __future__ import annotations

from tree_sitter import Node

from tests.twins.tree import (
    Edit,
    Syntax,
    condition_of,
    field,
    fresh,
    function_of,
    operator,
    repeated,
    replace,
    src,
    statements,
    types,
    walk,
)


def _assignments(node: Node) -> list[Node]:
    """The assignments to locals that a branch consists of, or none where it does more.

    An element of an array would be stored where it was not before.
    """
    known, found = types(function_of(node)), []
    for statement in statements(field(node, "consequence")):
        change = statement.named_children[0] if statement.named_children else statement
        plain = change.type == "assignment_expression" and operator(change) == "="
        if statement.type != "expression_statement" or not plain:
            return []
        name = known.get(src(field(change, "left")))
        if name is None or name.kind != "scalar":
            return []
        found.append(change)
    return found


def _step(syntax: Syntax) -> list[Edit]:
    for node in walk(syntax.root):
        if node.type != "if_statement" or node.child_by_field_name("alternative") is not None:
            continue
        found, when, head = _assignments(node), src(condition_of(node)), ""
        if not found:
            continue
        if len(found) > 1:  # the first one may change what the condition reads
            name = fresh("better", syntax)
            head, when = f"const bool {name} = {when};\n", name
        made = []
        for change in found:
            target = src(field(change, "left"))
            made.append(f"{target} = {when} ? {src(field(change, 'right'))} : {target};")
        text = head + "\n".join(made)
        alone = len(found) == 1 or (node.parent and node.parent.type == "compound_statement")
        return [replace(node, text if alone else f"{{ {text} }}")]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
