"""CUDA in colour: a program line by line, and the difference of two programs."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import cache
from typing import TYPE_CHECKING, Any

from optiml_magic.printable import printable
from optiml_magic.reports.blocks import MONO, QUIET
from optiml_magic.reports.markup import Markup, element

if TYPE_CHECKING:
    from pygments.formatters import HtmlFormatter

_CONTEXT = 3  # lines around a change
_BLOCK = f"{MONO};margin:4px 0;padding:0;overflow-x:auto;white-space:pre"
_ROWS = "display:inline-block;min-width:100%"  # tints reach as far as the longest line
_ROW = "display:block;padding:0 8px"
_TINTS = {
    "+": ";background-color:rgba(46,160,67,0.13);border-left:3px solid #1f8f45",
    "-": ";background-color:rgba(248,81,73,0.11);border-left:3px solid #d9453a",
    " ": ";border-left:3px solid rgba(128,128,128,0.2)",
}


@cache
def _formatter() -> HtmlFormatter[Any]:
    """Inline colours that can be read on a light page and a dark one."""
    from pygments.formatters import HtmlFormatter
    from pygments.style import Style
    from pygments.token import Comment, Keyword, Name, Number, String

    class Both(Style):  # type: ignore[misc]
        styles = {  # noqa: RUF012
            Comment: f"italic {QUIET}",
            Comment.Preproc: "noitalic #a05cd6",
            Keyword: "bold #2f7fd0",
            Keyword.Type: "nobold #178a8a",
            Name.Builtin: "#c94f8a",
            Number: "#c4651a",
            String: "#23893f",
        }

    return HtmlFormatter(nowrap=True, noclasses=True, style=Both)


def lines(program: str) -> list[Markup]:
    """Every line of a program, escaped and in colour."""
    from pygments import highlight

    from optiml_magic.reports.lexer import CudaOptimlLexer

    text = printable(program).rstrip("\n")
    lexer = CudaOptimlLexer(stripnl=False, ensurenl=False)
    return [Markup(line) for line in highlight(text, lexer, _formatter()).split("\n")]


def diff(before: str, after: str) -> Markup:
    """What differs, whole lines tinted, with three lines of context."""
    rows = element("span", *_rows(before, after), style=_ROWS)
    return element("pre", rows, style=_BLOCK)


def _rows(before: str, after: str) -> Iterator[Markup]:
    old, new = (printable(text).rstrip("\n").split("\n") for text in (before, after))
    old_lines, new_lines = lines(before), lines(after)
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    for group in matcher.get_grouped_opcodes(_CONTEXT):
        first, last = group[0], group[-1]
        where = f"lines {first[3] + 1} to {last[4]}"
        yield element("span", f"{where}\n", style=f"{_ROW};color:{QUIET}")
        for tag, i1, i2, j1, j2 in group:
            if tag == "equal":
                yield from (_row(" ", line) for line in new_lines[j1:j2])
            else:
                yield from (_row("-", line) for line in old_lines[i1:i2])
                yield from (_row("+", line) for line in new_lines[j1:j2])


def _row(mark: str, line: Markup) -> Markup:
    return element("span", f"{mark} ", line, "\n", style=_ROW + _TINTS[mark])
