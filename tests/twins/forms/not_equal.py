"""``k != n`` for ``k < n`` where the counter goes from 0 by one, and n is no negative number."""

from __future__ import annotations

from tests.twins.tree import (
    Counted,
    bare,
    changed,
    edited,
    field,
    function_of,
    loops,
    names,
    operator,
    parameters,
    parse,
    replace,
    src,
    words,
)


def _bound(loop: Counted) -> str | None:
    """What the counter ends at, where it cannot step over it."""
    condition = bare(loop.condition)
    if condition.type != "binary_expression" or src(field(condition, "left")) != loop.counter:
        return None
    bound, function = field(condition, "right"), function_of(loop.node)
    if not loop.by_one or src(loop.start) != "0" or words(bound) & changed(loop.body):
        return None
    given = {p.name for p in parameters(function) if p.type == "int"}
    if operator(condition) == "<" and (src(bound).isdigit() or src(bound) in given):
        return src(bound)
    # `k <= i`, where i is the number of a thread.
    starts = {n.name: src(n.declaration) for n in names(function) if n.type == "int"}
    if operator(condition) == "<=" and "threadIdx" in starts.get(src(bound), ""):
        return f"{src(bound)} + 1"
    return None


def apply(text: str) -> str | None:
    made = [
        replace(loop.condition, f"{loop.counter} != {bound}")
        for loop in loops(parse(text))
        if (bound := _bound(loop)) is not None
    ]
    return edited(text, made)
