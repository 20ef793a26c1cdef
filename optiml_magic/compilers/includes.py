"""Which files a text may name: those of the toolkit and of the task, never another's.

A scan of the text, which also sees what a comment or an ``#if`` turns off: a text that names a file
elsewhere is refused before any compiler, or any cache, could open it. What only macros that are
pasted together could name is left to the confinement of the compiler's process.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.model.build import Diagnostic

# Blanks and comments. Every repetition is bounded, so that the scan takes time in proportion to the
# text; what is longer than that is refused. ``??`` begins a trigraph.
_SPLICE = re.compile(r"(?:\\|\?\?/)[ \t]{0,100}\r?\n")
_GAP = r"(?>(?:[^\S\n]|/\*(?>(?:[^*]|\*(?!/)){0,300})\*/){0,300})"
_MORE = r"(?=/\*|[^\S\n])"
_HASH = rf"(?:\#|%:|\?\?=){_GAP}"
_FILE = (
    rf"(?:{_GAP}(?:\"(?P<quoted>[^\"\n]{{0,1000}})\"|<(?P<angled>[^>\n]{{0,1000}})>"
    r"|(?P<macro>\w{1,200})))?"
)
_FAR = re.compile(_HASH + _MORE)
_NAMED = re.compile(rf"{_HASH}(?P<directive>include(?:_next)?|import|embed)\b{_FILE}")
_ASKED = re.compile(rf"\b(?P<word>__has_(?:include|embed))\w{{0,20}}{_GAP}\(?{_FILE}")
_TESTED = re.compile(
    rf"(?:{_HASH}(?:el)?ifn?def\b|\bdefined\b){_GAP}\(?{_GAP}(?P<word>__has_(?:include|embed))"
)
_LINE = re.compile(
    rf"{_HASH}(?:line\b{_GAP}\d{{0,20}}+{_GAP}(?:[\"\w]|{_MORE})|\d{{1,20}}{_GAP}\")"
)
_DEFINED = re.compile(rf"{_HASH}define{_GAP}(?P<name>\w{{1,200}})(?P<value>[^\n]*)")
_LITERAL = re.compile(r"\s*(?:\"([^\"\n]*)\"|<([^>\n]*)>)\s*(?:/[/*].*)?", re.DOTALL)
_CELL_FOLDER = Path("/")  # the cell is called /cell.cu, and NVRTC looks beside it


def refused(text: str, options: CompileOptions) -> Diagnostic | None:
    """Why this text may not be compiled, with the line; None where nothing is wrong."""
    for at, complaint in _complaints(_SPLICE.sub("", text), options):
        return Diagnostic(_line(text, at), "error", complaint)
    return None


def _complaints(text: str, options: CompileOptions) -> Iterator[tuple[int, str]]:
    typed = {name for name, _ in options.headers}
    macros: dict[str, list[str]] = {name: [value] for name, value in options.defines}
    for match in _DEFINED.finditer(text):
        macros.setdefault(match["name"], []).append(match["value"])
    for match in _FAR.finditer(text):
        yield match.start(), "a directive too far behind its #"
    for match in _NAMED.finditer(text):
        directive = f"#{match['directive']}"
        for name in _names(match, macros):
            if name is None:
                yield match.start(), f"{directive} of a macro: write the name of the header itself"
            elif name not in typed and _is_elsewhere(name):
                yield match.start(), f"{directive} of a file outside of the toolkit and the task"
    tested = {match.start("word") for match in _TESTED.finditer(text)}
    for match in _ASKED.finditer(text):
        if match.start("word") in tested:
            continue
        for name in _names(match, macros):
            if name is None or (name not in typed and _is_elsewhere(name)):
                yield match.start(), "a question for a file outside of the toolkit and the task"
    for match in _LINE.finditer(text):
        yield match.start(), "a line directive that names a file"


def _names(match: re.Match[str], macros: dict[str, list[str]]) -> Iterator[str | None]:
    """The files that an include may mean; None for one that cannot be told."""
    name = match["quoted"] if match["quoted"] is not None else match["angled"]
    if name is not None:
        yield name
        return
    macro = match["macro"] or ""
    values, macros[macro] = macros.get(macro, [""]), []  # the next include of it says nothing new
    for value in values:
        literal = _LITERAL.fullmatch(value)
        yield (literal[1] or literal[2] or "") if literal else None


def _is_elsewhere(name: str) -> bool:
    """Whether a name leaves the folders that are searched, or lies beside the cell's own name."""
    plain = os.path.normpath(name.strip().replace("\\", "/"))
    if plain.startswith(("/", "..", "~")) or ":" in plain or "\0" in plain:
        return True
    try:
        return (_CELL_FOLDER / plain).is_file()
    except OSError:
        return False


def _line(text: str, at: int) -> int:
    """The 1-based line of an offset into the text without its splices."""
    for match in _SPLICE.finditer(text):
        if match.start() > at:
            break
        at += match.end() - match.start()
    return text.count("\n", 0, at) + 1
