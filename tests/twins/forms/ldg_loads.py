"""Reads of input arrays through ``__ldg``."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    index_of,
    input_loads,
    repeated,
    replace,
    src,
)


def _step(syntax: Syntax) -> list[Edit]:
    for node, array in input_loads(syntax):
        if not array.type.endswith("3"):  # there is no such load of a vector of three numbers
            return [replace(node, f"__ldg(&{array.name}[{src(index_of(node))}])")]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
