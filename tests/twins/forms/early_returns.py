"""A kernel whose whole work is in one ``if`` returns early instead."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    condition_of,
    edited,
    field,
    functions,
    inside,
    names,
    negation,
    parse,
    replace,
    statements,
    types,
)


def apply(text: str) -> str | None:
    made: list[Edit] = []
    for function in functions(parse(text)):
        last = statements(field(function, "body"))[-1]
        if last.type != "if_statement" or last.child_by_field_name("alternative") is not None:
            continue
        work = field(last, "consequence")
        inner = {n.name for s in statements(work) if s.type == "declaration" for n in names(s)}
        outer = {n.name for n in names(function) if n.declaration.start_byte < work.start_byte}
        if inner & outer:
            continue
        unless = negation(condition_of(last), types(function))
        made.append(replace(last, f"if ({unless}) return;\n{inside(work)}"))
    return edited(text, made)
