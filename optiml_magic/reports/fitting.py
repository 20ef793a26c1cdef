"""Reports as wide as a terminal: sentences break at words, programs and tables stay as they are."""

from __future__ import annotations

import re
import textwrap

_TITLE = re.compile(r"[a-z][^\n]*:")
_VERBATIM = ("diff:", "printed")  # how the titles of sections begin whose lines are not ours
_LABEL = re.compile(r" +(?:\S+(?: \S+)? {2,}|\[\w+\] |try: |#\d+ +\S+ (?:estimated|faster)? *)?")
_NARROWEST = 40  # columns that a sentence needs beside its label


def fitted(text: str, columns: int) -> str:
    """``text`` with each line that is too long broken at words, below where its sentence begins."""
    lines: list[str] = []
    verbatim = False
    for line in text.splitlines():
        if _TITLE.fullmatch(line):
            verbatim = line.startswith(_VERBATIM)
        lines += [line] if verbatim or len(line) <= columns else _broken(line, columns)
    return "\n".join(lines)


def _broken(line: str, columns: int) -> list[str]:
    label = _LABEL.match(line)
    indent = label.end() if label else 2
    if columns - indent < _NARROWEST:
        indent = 4
    return textwrap.wrap(
        line,
        columns,
        subsequent_indent=" " * indent,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
