"""Integers cast to ``int`` where they are declared, the C way."""

from __future__ import annotations

from tests.twins.tree import after, before, edited, functions, is_integer, names, parse, types


def apply(text: str) -> str | None:
    made = []
    for function in functions(parse(text)):
        known = types(function)
        for name in names(function):
            value = name.declarator.child_by_field_name("value")
            plain = name.type == "int" and name.kind == "scalar"
            if plain and value is not None and is_integer(value, known):
                made += [before(value, "(int)("), after(value, ")")]
    return edited(text, made)
