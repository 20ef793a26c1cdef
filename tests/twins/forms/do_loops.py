"""Loops between literal bounds, which run at least once, as ``do ... while``."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    bare,
    field,
    inside,
    loops,
    operator,
    repeated,
    replace,
    skips,
    src,
)


def _step(syntax: Syntax) -> list[Edit]:
    for loop in loops(syntax):
        condition = bare(loop.condition)
        if skips(loop.body) or condition.type != "binary_expression" or operator(condition) != "<":
            continue
        bound = src(field(condition, "right"))
        if src(field(condition, "left")) != loop.counter or not bound.isdigit():
            continue
        if not src(loop.start).isdigit() or int(src(loop.start)) >= int(bound):
            continue
        text = (
            f"{{ {loop.type} {loop.counter} = {src(loop.start)};\n"
            f"do {{\n{inside(loop.body)}\n{src(loop.update)};\n}} while ({src(condition)}); }}"
        )
        return [replace(loop.node, text)]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
