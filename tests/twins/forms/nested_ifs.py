"""All that follows an early return is in an ``if`` instead."""

from __future__ import annotations

from tests.twins.tree import (
    Edit,
    Syntax,
    condition_of,
    field,
    functions,
    negation,
    repeated,
    statements,
    types,
)


def _step(syntax: Syntax) -> list[Edit]:
    for function in functions(syntax):
        body = field(function, "body")
        held = statements(body)
        for at, node in enumerate(held[:-1]):
            if node.type != "if_statement" or node.child_by_field_name("alternative"):
                continue
            (leave, *more) = statements(field(node, "consequence"))
            rest = syntax.text[held[at + 1].start_byte : held[-1].end_byte].decode()
            if more or leave.type != "return_statement" or "__syncthreads" in rest:
                continue
            stay = negation(condition_of(node), types(function))
            return [Edit(node.start_byte, held[-1].end_byte, f"if ({stay}) {{\n{rest}\n}}")]
    return []


def apply(text: str) -> str | None:
    return repeated(text, _step)
