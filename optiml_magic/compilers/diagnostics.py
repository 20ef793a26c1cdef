"""Compiler logs to diagnostics on lines of the cell."""

from __future__ import annotations

import re
from typing import Literal

from optiml_magic.model.build import CompileFailure, Diagnostic
from optiml_magic.source.lexer import lex

CELL = "/cell.cu"
"""What the compiler calls the kernel text: absolute, so that no folder of this machine gets in."""

_MESSAGE = re.compile(
    r"^(?:(?P<file>[^\s(][^(\n]*)\((?P<line>\d+)\)|(?P<host>[^\s:][^:\n]*):(?P<at>\d+):\d+): "
    r"(?P<severity>(?:catastrophic |fatal )?error|warning)[^:\n]*: (?P<text>.*)$",
    re.MULTILINE,
)  # the second form is the host compiler's, which preprocesses for nvcc

_ASSEMBLER = re.compile(
    r"^[ \x00]?ptxas (?:[^\n;]*?line \d+; )?(?:error|fatal)\s*: "
    r"(?!Ptx assembly aborted)(?P<text>[^\n]*)$",
    re.MULTILINE,
)

# An error at the end of the text has no line; its note names the line of what was never closed.
_AT_END = re.compile(
    r"^At end of source: (?P<severity>error|warning)[^:\n]*: (?P<text>[^\n]*)"
    r"(?:\n[^\n]*\((?P<line>\d+)\): note)?",
    re.MULTILINE,
)


_SEMICOLON = 'expected a ";"'
# Below its message a compiler prints the line, and below that a caret: here under the first word.
_AT_FIRST = re.compile(r"\n([ \t]*)[^ \t\n][^\n]*\n\1\^")

_UNDEFINED = re.compile(r'identifier "(\w+)" is undefined')

# A kernel is asked for by its name, behind the text, which does not say which of several it is.
_OVERLOADED = re.compile(r'overloaded function "(\w+)"')
_NAMES = "__nv_name_map"
_ASKED = re.compile(r'Input name expression was: "\s*([^"\n]+)"')

# Why a file did not open tells one that exists from one that does not.
_REASON = re.compile(r"(cannot open source file \"[^\"\n]*\"): [^\n]*")


def parse_log(log: str, source: str = "") -> tuple[Diagnostic, ...]:
    """The messages of a log in order. One in a header ends with the header's name and line.

    A ``;`` that is missed at the beginning of a line is missing at the end of the code before it:
    with the ``source`` the message points there.
    """
    found = list[Diagnostic]()
    for match in _MESSAGE.finditer(log):
        file, line = match["file"] or match["host"], match["line"] or match["at"]
        inside = file == CELL
        text, at = match["text"].strip(), int(line) if inside else 0
        several = _OVERLOADED.search(text) if file == _NAMES else None
        if several:
            at = _kernel_of(source, several[1])
            text = f"CUDA's headers have a function `{several[1]}` as well; rename the kernel"
        elif file == _NAMES and found:  # what follows from the one before
            continue
        elif file == _NAMES and (asked := _ASKED.search(log)):
            name = re.sub(r"\s*([<>]|(?=,))\s*", r"\1", asked[1].strip())  # of `k < float , 3 >`
            bare = name.partition("<")[0]
            at = _kernel_of(source, bare)
            if bare != name and at and not _is_template(source, bare):
                text = f"`{bare}` is not a template, and the launch asks for `{name}`"
            else:
                text = f"{text}, where the launch asks for `{name}`"
        elif not inside:
            text = f"{text} (in {file.rsplit('/', 1)[-1]}:{line})"
        elif text == _SEMICOLON and source and _AT_FIRST.match(log, match.end()):
            text, at = f"{text} at the end of this line", _code_before(source, at)
        found.append(
            Diagnostic(
                line=at,
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


def _code_before(source: str, line: int) -> int:
    """The last line before ``line`` that is not blank or a comment."""
    lines = lex(source).code.splitlines()[: line - 1]
    return max((at for at, code in enumerate(lines, 1) if code.strip()), default=line)


def _kernel_of(source: str, name: str) -> int:
    """The line that defines a kernel; 0 where none does."""
    code = lex(source).code
    place = re.search(rf"__global__\b[^;{{}}]*?\b{name}\s*\(", code)
    return code.count("\n", 0, place.end()) + 1 if place else 0


def _is_template(source: str, name: str) -> bool:
    """Whether ``template`` stands before the kernel of that name."""
    return re.search(rf"\btemplate\b[^;{{}}]*?\b{name}\s*\(", lex(source).code) is not None


def _undefined(text: str) -> str:
    """The name that a message calls undefined; neither NVRTC nor nvcc gives this error a number."""
    found = _UNDEFINED.search(text)
    return found[1] if found else ""


def failure(log: str, otherwise: str, source: str = "") -> CompileFailure:
    """A log without success: its errors, or the whole of it where none can be read."""
    log = _REASON.sub(r"\1", log)
    errors = tuple(d for d in parse_log(log, source) if d.severity == "error")
    return CompileFailure(errors or (Diagnostic(0, "error", log.strip() or otherwise),), log)
