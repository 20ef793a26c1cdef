"""Statements that stand outside of any function, as a cell has them beside its kernel."""

from __future__ import annotations

from itertools import dropwhile
from typing import TYPE_CHECKING

from optiml_magic.source.edits import Edit, apply
from optiml_magic.source.formals import text_of
from optiml_magic.source.syntax import name_of, parse, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tree_sitter import Node

#: What only a function may have.
STATEMENTS = frozenset(
    {"expression_statement", "for_statement", "while_statement", "do_statement", "if_statement",
     "for_range_loop", "compound_statement"}
)  # fmt: skip
_CALLS = frozenset({"call_expression", "kernel_call_syntax"})


def with_main_around(text: str, device: Collection[str]) -> str:
    """The text with statements outside of functions in a ``main``; no line of it moves.

    A declaration with a word of the ``device`` stays outside. A text that has a ``main`` stays as
    it is: a compiler refuses statements beside that.
    """
    root = parse(text).root
    if not any(child.type in STATEMENTS for child in root.children):
        return text
    if any(n.type == "function_definition" and name_of(n) == "main" for n in root.children):
        return text
    edits: list[Edit] = []
    for run in _runs(root, device):
        start, end = run[0].start_byte, run[-1].end_byte
        edits += [Edit(start, start, "int main() { "), Edit(end, end, " }")]
    return apply(text, edits)


def _runs(root: Node, device: Collection[str]) -> Iterator[list[Node]]:
    """The statements in a row that call something, with the declarations between them.

    Constants in front of them are for the other functions, too.
    """
    run: list[Node] = []
    for child in [*root.children, None]:
        statement = child is not None and child.type in STATEMENTS
        declares = (
            child is not None and child.type == "declaration" and not ({*device} & _words(child))
        )
        if child is not None and (statement or declares or child.type in ("comment", ";")):
            run.append(child)
            continue
        own = [*dropwhile(_is_for_all, run)]
        called = (n for one in own if one.type in STATEMENTS for n in walk(one))
        if any(node.type in _CALLS for node in called):
            yield own
        run = []


def _is_for_all(node: Node) -> bool:
    return node.type in ("comment", ";") or bool({"const", "constexpr", "static"} & _words(node))


def _words(declaration: Node) -> set[str]:
    return {text_of(child) for child in declaration.children}
