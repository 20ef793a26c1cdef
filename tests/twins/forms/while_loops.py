"""Counted loops as ``while`` with the counter before and the step at the end."""

from __future__ import annotations

from tests.twins.tree import Edit, Syntax, inside, loops, repeated, replace, skips, src


def _step(syntax: Syntax) -> list[Edit]:
    for loop in loops(syntax):
        if skips(loop.body):
            continue
        text = (
            f"{{ {loop.type} {loop.counter} = {src(loop.start)};\n"
            f"while ({src(loop.condition)}) {{\n{inside(loop.body)}\n{src(loop.update)};\n}} }}"
        )
        return [replace(loop.node, text)]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
