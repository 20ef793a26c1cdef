"""Integer locals that never change written out wherever they are used."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    bare,
    changed,
    declared_once,
    field,
    functions,
    is_integer,
    names,
    repeated,
    replace,
    src,
    types,
    walk,
    words,
)


def _step(syntax: Syntax) -> list[Edit]:
    for function in functions(syntax):
        known, body = types(function), field(function, "body")
        moving = _reassigned(function)
        for name in names(function):
            value, parent = name.declarator.child_by_field_name("value"), name.declaration.parent
            if name.type != "int" or name.kind != "scalar" or value is None or parent is None:
                continue
            if parent.type != "compound_statement" or len(names(name.declaration)) != 1:
                continue
            if "[" in src(value) or not is_integer(value, known) or name.name in moving:
                continue
            if words(value) & moving or not declared_once(function, name.name):
                continue
            text = src(value) if bare(value).type != "binary_expression" else f"({src(value)})"
            # Other than the local, a builtin is unsigned: comparisons with it would be as well.
            text = f"(int){text}" if "Idx" in text or "Dim" in text else text
            uses = [n for n in walk(body) if n.type == "identifier" and src(n) == name.name]
            made = [replace(n, text) for n in uses if n.start_byte > name.declaration.end_byte]
            return [replace(name.declaration, ""), *made]
    return []


def _reassigned(function) -> set[str]:
    """Names that change after they were declared, or may by a reference, and counters of loops."""
    found: set[str] = set()
    for name in names(function):
        value = name.declarator.child_by_field_name("value")
        if name.kind == "reference" and value is not None:
            found |= words(value)
    for node in walk(function):
        if node.type in ("assignment_expression", "update_expression"):
            found |= changed(node)
    return found


def apply(text: str) -> str | None:
    return repeated(text, _step)
