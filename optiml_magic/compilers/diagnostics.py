"""Compiler logs to diagnostics on lines of the cell."""

from __future__ import annotations

import re
from typing import Literal

from optiml_magic.model.build import CompileFailure, Diagnostic

CELL = "/cell.cu"
"""What the compiler calls the kernel text: absolute, so that no folder of this machine gets in."""

_MESSAGE = re.compile(
    r"^(?:(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\)|(?P<host>[^\s:][^:\n]*):(?P<at>\d+):\d+): "
    r"(?P<severity>(?:catastrophic |fatal )?error|warning)[^:\n]*: (?P<text>.*)$",
    re.MULTILINE,
)  # the second form is the host compiler's, which preprocesses for nvcc

_ASSEMBLER = re.compile(
    r"^ ?ptxas (?:[^\n;]*?line \d+; )?(?:error|fatal)\s*: "
    r"(?!Ptx assembly aborted)(?P<text>[^\n]*)$",
    re.MULTILINE,
)

# An error at the end of the text has no line; its note names the line of what was never closed.
_AT_END = re.compile(
    r"^At end of source: (?P<severity>error|warning)[^:\n]*: (?P<text>[^\n]*)"
    r"(?:\n[^\n]*\((?P<line>\d+)\): note)?",
    re.MULTILINE,
)


# The compiler names the line of what follows, which is rarely the one to be changed.
_SEMICOLON = ('expected a ";"', 'expected a ";" here or at the end of the line before')
_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined')

# Why a file did not open tells one that exists from one that does not.
_REASON = re.compile(r"(cannot open source file \"[^\"\n]*\"): [^\n]*")


def parse_log(log: str) -> tuple[Diagnostic, ...]:
    """The messages of a log in order. One in a header ends with the header's name and line."""
    found = []
    for match in _MESSAGE.finditer(log):
        file, line = match["file"] or match["host"], match["line"] or match["at"]
        inside = file == CELL
        text = match["text"].strip().replace(*_SEMICOLON)
        if not inside:
            text = f"{text} (in {file.rsplit('/', 1)[-1]}:{line})"
        found.append(
            Diagnostic(
                line=int(line) if inside else 0,
                severity="warning" if match["severity"] == "warning" else "error",
                message=text,
                undefined=_undefined(text),
            )
        )
    found.extend(Diagnostic(0, "error", f"ptxas: {m['text']}") for m in _ASSEMBLER.finditer(log))
    for match in _AT_END.finditer(log):
        opened = ", which this line opens" if match["line"] else ""
        text = f"{match['text'].strip()} before the end of the text{opened}"
        severity: Literal["error", "warning"] = (
            "error" if match["severity"] == "error" else "warning"
        )
        found.append(Diagnostic(int(match["line"] or 0), severity, text))
    return tuple(found)


def _undefined(text: str) -> str:
    """The name that a message calls undefined; neither NVRTC nor nvcc gives this error a number."""
    found = _UNDEFINED.search(text)
    return found[1] if found else ""


def failure(log: str, otherwise: str) -> CompileFailure:
    """A log without success: its errors, or the whole of it where none can be read."""
    log = _REASON.sub(r"\1", log)
    errors = tuple(d for d in parse_log(log) if d.severity == "error")
    return CompileFailure(errors or (Diagnostic(0, "error", log.strip() or otherwise),), log)
