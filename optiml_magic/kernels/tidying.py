"""Indentation made anew from braces, for a function that an edit has touched."""

from __future__ import annotations

import re

_INDENT = "    "
_TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|[{}()]|[^\s{}()]', re.DOTALL
)
_OPEN_ENDED = re.compile(r"[;{}:]$")


def tidied(text: str) -> str:
    """The lines of one function, each as far in as its braces say; waits in a row become one."""
    depth, parens, goes_on, comment = 0, 0, False, False
    written: list[str] = []
    for line in text.split("\n"):
        words = line.strip()
        if comment or not words:
            written.append(line.rstrip())
            comment = comment and "*/" not in words
            continue
        closing = words.startswith("}")
        directive = words.startswith("#")
        level = depth - closing + (goes_on and not words.startswith("{") and not directive)
        if directive and not words.startswith("#pragma"):
            level = 0
        written.append(f"{_INDENT * max(level, 0)}{words}" if written else words)
        if directive:
            continue
        code = ""
        for word in _TOKENS.findall(words):
            if word.startswith(("//", "/*")):
                continue
            depth += (word == "{") - (word == "}")
            parens += (word == "(") - (word == ")")
            code = word
        comment = words.rfind("/*") > words.rfind("*/")
        if code:
            goes_on = parens > 0 or not _OPEN_ENDED.search(code)
    return "\n".join(_single(written))


def _single(written: list[str]) -> list[str]:
    found: list[str] = []
    for line in written:
        wait = line.strip().startswith(("__syncthreads();", "__syncwarp("))
        if not (wait and found and found[-1].strip() == line.strip()):
            found.append(line)
    return found
