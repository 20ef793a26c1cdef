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
    for at, node in enumerate(_leaves(parse(text).root)):
        yield Token(src(node).strip(), at, node.type.startswith("preproc"))


def _leaves(node: Node) -> Iterator[Node]:
    if node.type == "comment":
        return
    if node.type.startswith("preproc") or node.type in _WHOLE or not node.children:
        if src(node).strip():
            yield node
        return
    for child in node.children:
        yield from _leaves(child)
