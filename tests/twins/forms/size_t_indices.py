"""Indices of ``size_t``: the row is widened before it is multiplied."""

from __future__ import annotations

from tests.twins.indices import sums_of_products
from tests.twins.tree import (
    SIGNED,
    bare,
    edited,
    function_of,
    is_integer,
    parse,
    replace,
    src,
    types,
)


def apply(text: str) -> str | None:
    made = []
    done = 0
    for node, row, length, rest in sums_of_products(parse(text)):
        known = types(function_of(node))
        # An unsigned index below zero would not come back as one when it is widened.
        signed = all(is_integer(part, known, SIGNED) for part in (row, length, rest))
        if signed and node.start_byte >= done:
            widened = f"(size_t)({src(bare(row))}) * {src(length)} + {src(rest)}"
            made.append(replace(node, widened))
            done = node.end_byte
    return edited(text, made)
