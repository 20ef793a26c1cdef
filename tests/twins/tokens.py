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
    found = [*_leaves(parse(text).root)]
    for at, (node, behind) in enumerate(zip(found, [*found[1:], None], strict=True)):
        words = src(node).strip()
        if words == "=" and at and _is_one(found[at - 1], node):
            continue
        whole = words == ">" and behind is not None and _is_one(node, behind)
        yield Token(">=" if whole else words, at, node.type.startswith("preproc"))


def _is_one(node: Node, behind: Node) -> bool:
    """Whether these are a ``>=`` that was read as the end of a template's arguments."""
    return src(node) + src(behind) == ">=" and node.end_byte == behind.start_byte


def _leaves(node: Node) -> Iterator[Node]:
    if node.type == "comment":
        return
    if node.type.startswith("preproc") or node.type in _WHOLE or not node.children:
        if src(node).strip():
            yield node
        return
    for child in node.children:
        yield from _leaves(child)
