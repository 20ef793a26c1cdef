"""Compiler logs to diagnostics on lines of the cell."""

from __future__ import annotations

import re

from optiml_magic.model.build import Diagnostic

CELL = "/cell.cu"
"""What the compiler calls the kernel text: absolute, so that no folder of this machine gets in."""

_MESSAGE = re.compile(
    r"^(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\): "
    r"(?P<severity>(?:catastrophic )?error|warning)[^:\n]*: (?P<text>.*)$",
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
    return tuple(found)
