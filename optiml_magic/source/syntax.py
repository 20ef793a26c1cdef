"""CUDA text to a tree-sitter syntax tree whose byte offsets are those of the text.

The grammar stumbles over a few attributes, an unroll hint between a head and its loop, and a
comment in a macro of several lines. They are blanked out before parsing, byte for byte; every
span read back comes from the untouched text. Whether a text is *valid* is for the compiler alone
to say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import tree_sitter_cuda
from tree_sitter import Language, Node, Parser

from optiml_magic.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

_ATTRIBUTE_HEAD = re.compile(
    rb"\b(?:__align__|alignas|_Pragma|__cluster_dims__|__maxnreg__|__attribute__|__block_size__)\s*\("
)
#: The group is an unroll hint between the head of a statement and what that leads to.
_HINT_BEHIND_HEAD = re.compile(
    rb"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
    rb"|(?:\)|\b(?:else|do)\b)(?:\s|//[^\n]*\n|/\*.*?\*/)*"
    rb"(#[ \t]*pragma[ \t]+(?:GCC[ \t]+)?(?:no)?unroll\b[^\\\n]*)(?=\n)",
    re.DOTALL,
)
_LONG_MACRO = re.compile(rb"^[ \t]*#[ \t]*define\b(?:[^\n]*\\\r?\n)+[^\n]*", re.MULTILINE)
_COMMENT = re.compile(rb"\"(?:\\.|[^\"\\\n])*\"|(/\*[^\n]*?\*/)")
_PARENTHESIS = re.compile(rb"[()]")
_VISIBLE = re.compile(rb"[^\r\n]")
_LONGEST = 500  # bytes: no attribute is longer, so one that is closed far away is none


@dataclass(frozen=True)
class Syntax:
    """A parsed text: ``text`` as UTF-8 bytes and the root node of its tree."""

    text: bytes
    root: Node

    def source(self, node: Node) -> str:
        """The text that a node spans, attributes included."""
        return self.text[node.start_byte : node.end_byte].decode()

    def kernels(self) -> tuple[Node, ...]:
        """The ``function_definition`` nodes marked ``__global__``, in order of appearance."""
        return tuple(
            node
            for node in walk(self.root)
            if node.type == "function_definition"
            and any(child.type == "__global__" for child in node.children)
        )


def line_of(node: Node) -> int:
    """The 1-based line on which a node starts."""
    return int(node.start_point[0]) + 1


def walk(node: Node) -> Iterator[Node]:
    """A node and all its descendants, in the order of the text."""
    stack = [node]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(current.children))


@lru_cache(maxsize=256)
def nodes_of(node: Node) -> tuple[Node, ...]:
    """What ``walk`` comes to: of a function's body, which is walked again for each of its names."""
    return tuple(walk(node))


def passed_to(call: Node) -> list[Node]:
    """The arguments of a call, without the comments between them."""
    listed = call.child_by_field_name("arguments")
    return [a for a in (listed.named_children if listed else ()) if a.type != "comment"]


def in_macros(syntax: Syntax, name: str) -> bool:
    """Whether a macro that the text defines has this word in it."""
    word = re.compile(rf"\b{re.escape(name)}\b".encode())
    return any(
        node.type.startswith("preproc_")
        and node.type.endswith("def")
        and word.search(node.text or b"")
        for node in walk(syntax.root)
    )


def parse(text: str) -> Syntax:
    """The tree of ``text``; a text with errors still gives a tree, with ERROR nodes in it."""
    try:
        raw = text.encode()
    except UnicodeEncodeError as error:
        raise SourceError(
            "a character that no file can hold",
            fix="remove the lone surrogate",
            line=text.count("\n", 0, error.start) + 1,
        ) from None
    return Syntax(raw, _parser().parse(_masked(raw)).root_node)


_NAMED = frozenset({"identifier", "function_declarator"})


def name_of(function: Node) -> str:
    """The name that a ``function_definition`` declares."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type not in ("identifier", "template_function"):
        inner = declarator.child_by_field_name("declarator")
        if inner is None:
            inner = next((c for c in declarator.children if c.type in _NAMED), None)
        declarator = inner
    return declarator.text.decode() if declarator is not None and declarator.text else ""


@lru_cache(maxsize=1)
def language() -> Language:
    """CUDA's grammar."""
    return Language(tree_sitter_cuda.language())


@lru_cache(maxsize=1)
def _parser() -> Parser:
    return Parser(language())


def _masked(text: bytes) -> bytes:
    return _mask_comments(_mask_hints(_mask_attributes(text)))


def _mask_comments(text: bytes) -> bytes:
    """Those between the lines of a macro, behind which the grammar takes it to be over."""
    if b"/*" not in text or b"\\\n" not in text.replace(b"\r", b""):
        return text
    return _LONG_MACRO.sub(
        lambda macro: _COMMENT.sub(lambda c: b" " * len(c[0]) if c[1] else c[0], macro[0]), text
    )


def _mask_attributes(text: bytes) -> bytes:
    heads = list(_ATTRIBUTE_HEAD.finditer(text))
    if not heads:
        return text
    closing = _closings(text)
    parts, kept = [], 0
    for head in heads:
        end = closing.get(head.end() - 1)
        if head.start() >= kept and end is not None and end - head.start() < _LONGEST:
            parts += [text[kept : head.start()], _VISIBLE.sub(b" ", text[head.start() : end + 1])]
            kept = end + 1
    return b"".join([*parts, text[kept:]])


def without_hint(head: str) -> str:
    """The head of a statement without an unroll hint between it and what it leads to."""
    return _mask_hints(head.encode()).decode() if "unroll" in head else head


def _mask_hints(text: bytes) -> bytes:
    """``for (...)``, ``#pragma unroll``, ``for (...)``: a directive is no statement."""
    if b"unroll" not in text:
        return text
    parts, kept = [], 0
    for found in _HINT_BEHIND_HEAD.finditer(text):
        start, end = found.span(1)
        if start >= 0:
            parts += [text[kept:start], b" " * (end - start)]
            kept = end
    return b"".join([*parts, text[kept:]])


def _closings(text: bytes) -> dict[int, int]:
    """The offset of each parenthesis that is closed, and of the one that closes it."""
    open_: list[int] = []
    closing = {}
    for found in _PARENTHESIS.finditer(text):
        if found[0] == b"(":
            open_.append(found.start())
        elif open_:
            closing[open_.pop()] = found.start()
    return closing
