"""A program printed anew token by token; its preprocessor lines stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tree_sitter import Node

from optiml_magic.source.syntax import parse

from .tree import src

_WHOLE = ("string_literal", "char_literal", "number_literal", "sized_type_specifier")


@dataclass(frozen=True)
class Token:
    """A word or sign, the how many-eth of its run it is, or a whole preprocessor line."""

    text: str
    at: int
    line: bool


def printed(text: str, layout: Callable[[Token | None, Token], str]) -> str:
    """The text with ``layout(before, token)`` between the tokens; comments are dropped."""
    pieces: list[str] = []
    before: Token | None = None
    for token in _tokens(text):
        if token.line:
            pieces += ["\n" if pieces and not pieces[-1].endswith("\n") else "", token.text, "\n"]
            before = None
        else:
            pieces += [layout(before, token), token.text]
            before = token
    return "".join(pieces) + "\n"


def _tokens(text: str) -> Iterator[Token]:
    leaves = list(_leaves(parse(text).root))
    for at, node in enumerate(leaves):
        before, after = leaves[at - 1] if at else None, leaves[at + 1 : at + 2]
        # The grammar takes `x < n && y >= 1` for a template with a value.
        if before is not None and _is_split(before, node):
            continue
        split = bool(after) and _is_split(node, after[0])
        yield Token(">=" if split else src(node).strip(), at, node.type.startswith("preproc"))


def _is_split(left: Node, right: Node) -> bool:
    return left.end_byte == right.start_byte and (left.type, right.type) == (">", "=")


def _leaves(node: Node) -> Iterator[Node]:
    if node.type == "comment":
        return
    if node.type.startswith("preproc") or node.type in _WHOLE or not node.children:
        if src(node).strip():
            yield node
        return
    for child in node.children:
        yield from _leaves(child)
