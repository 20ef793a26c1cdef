"""Compiler logs to diagnostics on lines of the cell."""

from __future__ import annotations

import re
from typing import Literal

from optiml_magic.model.build import Diagnostic

CELL = "/cell.cu"
"""What the compiler calls the kernel text: absolute, so that no folder of this machine gets in."""

_MESSAGE = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): "
    r"(?P<severity>(?:catastrophic )?error|warning)[^:\n]*: (?P<text>.*)$",
    re.MULTILINE,
)

# An error at the end of the text has no line; its note names the line of what was never closed.
_AT_END = re.compile(
    r"^At end of source: (?P<severity>error|warning)[^:\n]*: (?P<text>[^\n]*)"
    r"(?:\n[^\n]*\((?P<line>\d+)\): note)?",
    re.MULTILINE,
)


def parse_log(log: str) -> tuple[Diagnostic, ...]:
    """The messages of a log in order. One in a header keeps its text and gets the header's name."""
    found = []
    for match in _MESSAGE.finditer(log):
        inside = match["file"] == CELL
        text = match["text"].strip()
        if not inside:
            text = f"{text} (in {match['file'].rsplit('/', 1)[-1]}:{match['line']})"
        found.append(
            Diagnostic(
                line=int(match["line"]) if inside else 0,
                severity="warning" if match["severity"] == "warning" else "error",
                message=text,
            )
        )
    for match in _AT_END.finditer(log):
        opened = ", which this line opens" if match["line"] else ""
        text = f"{match['text'].strip()} before the end of the text{opened}"
        severity: Literal["error", "warning"] = (
            "error" if match["severity"] == "error" else "warning"
        )
        found.append(Diagnostic(int(match["line"] or 0), severity, text))
    return tuple(found)
