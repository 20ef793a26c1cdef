"""CUDA for Pygments: cells of the magics, and programs with directives.

Registered as ``cuda-optiml``, and loaded by every search for a lexer, so it stays light.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, ClassVar

from pygments.lexer import bygroups, include, inherit, words
from pygments.lexers.c_like import CudaLexer
from pygments.token import Comment, Keyword, Name, Operator, Text, Whitespace

from optiml_magic.kernels.builtins import BUILTINS
from optiml_magic.source.grammar import CLAUSES, FORMS

_MAGIC = re.compile(r"(\s*)(%%)(optiml)\b([^\n]*)(\n|\Z)")
_WORD = re.compile(r"(\s+)|(--?[\w-]+)|(=)|([^\s=]+)")
_PROSE = "synthesize"
_KINDS = {
    "keyword": Keyword.Reserved,
    "class": Keyword.Type,
    "instance": Name.Builtin,
    "function": Name.Builtin,
}


class CudaOptimlLexer(CudaLexer):  # type: ignore[misc]  # Pygments ships no types
    """A cell of ``%%optiml``, or a program without the magic's line."""

    name = "CUDA with optiml's directives"
    aliases = ("cuda-optiml",)
    filenames = ()
    mimetypes = ()
    url = ""

    tokens: ClassVar[dict[str, Any]] = {
        "macro": [
            (
                r"([ \t]*)(pragma)([ \t]+)(optiml)\b",
                bygroups(Whitespace, Comment.Preproc, Whitespace, Comment.Preproc),
                ("#pop", "directive"),
            ),
            inherit,
        ],
        "directive": [
            (r"\\\n", Comment.Preproc),
            (r"\n", Whitespace, "#pop"),
            (r"[ \t\r]+", Whitespace),
            (r"//[^\n]*", Comment.Single),
            (r"/\*[\s\S]*?\*/", Comment.Multiline),
            (words((*FORMS, *CLAUSES, "in"), prefix=r"\b", suffix=r"\b"), Keyword.Pseudo),
            (r"[{};]", Operator),
            include("statements"),
            (r".", Text),
        ],
    }

    def get_tokens_unprocessed(
        self, text: str, stack: tuple[str, ...] = ("root",)
    ) -> Iterator[tuple[int, Any, str]]:
        magic = _MAGIC.match(text)
        begin = magic.end() if magic else 0
        if magic:
            yield from _command(magic)
        body = text[begin:]
        if magic and magic[4].split()[:1] == [_PROSE]:
            yield begin, Text, body
            return
        for index, token, value in super().get_tokens_unprocessed(body, stack):
            known = BUILTINS.get(value) if token in (Name, Name.Function) else None
            yield begin + index, _KINDS[known.kind] if known else token, value


def _command(magic: re.Match[str]) -> Iterator[tuple[int, Any, str]]:
    """The line of the magic: the command, its options and what they are given."""
    yield magic.start(1), Whitespace, magic[1]
    yield magic.start(2), Operator, magic[2]
    yield magic.start(3), Keyword, magic[3]
    verb = True
    for part in _WORD.finditer(magic[4]):
        blank, flag, equals, _ = part.groups()
        token = Whitespace if blank else Name.Attribute if flag else Operator if equals else Text
        if token is Text and verb:
            token, verb = Name.Function, False
        yield magic.start(4) + part.start(), token, part[0]
    yield magic.start(5), Whitespace, magic[5]
