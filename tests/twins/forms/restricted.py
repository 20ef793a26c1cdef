"""``__restrict__`` on every pointer parameter."""

from __future__ import annotations

from tests.twins.tree import before, edited, functions, parameters, parse, src, walk


def apply(text: str) -> str | None:
    made = []
    for function in functions(parse(text)):
        for name in parameters(function):
            if name.kind == "pointer" and "__restrict__" not in src(name.declaration):
                inner = [n for n in walk(name.declarator) if n.type == "identifier"][-1]
                made.append(before(inner, "__restrict__ "))
    return edited(text, made)
