"""Which files a text may name: those of the toolkit and of the task, never another's.

A scan of the text, which also sees what a comment or an ``#if`` turns off: a text that names a file
elsewhere is refused before any compiler, or any cache, could open it. A directive that only macros
spell together is looked for in what nvcc's preprocessor wrote, before any answer is shown.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from optiml_magic.compilers.base import CompileOptions
from optiml_magic.model.build import Diagnostic

# Every repetition but that of blanks is bounded, so that the scan takes time in proportion to the
# text; what is longer is refused. What follows the first sign is only looked at: a comment can hold
# the beginning of a directive whose end is another's. ``??`` begins a trigraph.
_SPLICES = tuple(
    re.compile(rf"{backslash}{blanks}\r?\n")
    for backslash in (r"\\", r"(?:\\|\?\?/)")  # trigraphs are gone from C++17
    for blanks in ("", r"[ \t\f\v]*+")  # g++ joins lines over blanks, NVRTC does not
)
_LONE_RETURN = re.compile(r"\r(?!\n)")
_BLANKS = r"[^\S\n]*+"
_SIGN = r"(?:\#|%:|\?\?=)"
_HASH = rf"{_SIGN}(?={_BLANKS}"
_FILE = (
    rf"(?:{_BLANKS}(?:\"(?P<quoted>[^\"\n]{{0,1000}})\"|<(?P<angled>[^>\n]{{0,1000}})>"
    rf"|(?P<macro>(?a:\w){{1,200}}+)(?={_BLANKS}(?:$|//))))?"
)
_FAR = re.compile(rf"{_HASH}(?:define{_BLANKS})?/\*)")
_NAMED = re.compile(
    rf"{_HASH}(?P<directive>include(?:_next)?|import|embed)\b{_FILE})", re.MULTILINE
)
_CONDITION = re.compile(rf"^{_BLANKS}{_SIGN}{_BLANKS}(?:el)?if(?:(?!\*/)[^\n])*+", re.MULTILINE)
_ASKED = re.compile(
    rf"(?P<tested>n?def{_BLANKS}|\bdefined{_BLANKS}(?:\({_BLANKS})?)?"
    rf"\b__has_(?:include|embed)\w*+(?={_BLANKS}\(?{_FILE})",
    re.MULTILINE,
)
_LINE = re.compile(
    rf"{_SIGN}(?!(?<=^\#)line \d{{1,7}}\r?$)(?={_BLANKS}line\b)"
    rf"|{_HASH}\d++{_BLANKS}(?:\"|/\*))",
    re.MULTILINE,
)
_NUMBERED = re.compile(
    rf"^{_BLANKS}{_HASH}\d++{_BLANKS}(?P<macro>\w*+)(?P<more>[\\$])?)", re.MULTILINE
)
_ALIASED = re.compile(rf"{_HASH}define{_BLANKS}\w*+\\[uU])")
_DEPENDENCY = re.compile(rf"\bGCC{_BLANKS}(?:dependency\b|/\*)")
_SPELLED_PRAGMA = re.compile(rf"\b_Pragma\b(?!{_BLANKS}\({_BLANKS}\")")
_DEFINED = re.compile(rf"{_HASH}define{_BLANKS}(?P<name>\w{{1,200}})(?P<value>[^\n]{{0,1000}}))")
_LITERAL = re.compile(r"\s*\"([^\"]*)\"\s*(?:/[/*].*)?")
# What g++ leaves are its own markers and pragmas, which begin in the first column.
_LEFT_OVER = re.compile(rf"^(?!\# \d|\#pragma\b){_BLANKS}{_SIGN}", re.MULTILINE)
_CELL_FOLDER = Path("/")  # the cell is called /cell.cu, and NVRTC looks beside it


def refused(text: str, options: CompileOptions) -> Diagnostic | None:
    """Why this text may not be compiled, with the line; None where nothing is wrong."""
    lone = _LONE_RETURN.search(text)
    if lone is not None:  # it ends a line for g++ alone
        line = text.count("\n", 0, lone.start()) + 1
        return Diagnostic(line, "error", r"a carriage return alone: end lines with \n or \r\n")
    for joined, splice in _readings(text).items():
        for at, complaint in _complaints(joined, options):
            return Diagnostic(_line(text, splice, at), "error", complaint)
    return None


def preprocessed_refused(text: str) -> Diagnostic | None:
    """The same of what a preprocessor wrote, since nvcc's front end follows directives in it."""
    if any(_LEFT_OVER.search(joined) for joined in _readings(text)):
        return Diagnostic(0, "error", "a directive made by a macro: write it out")
    return None


def _readings(text: str) -> dict[str, re.Pattern[str]]:
    """The text as each compiler joins its lines, with the splices that went."""
    return {splice.sub("", text): splice for splice in reversed(_SPLICES)}


def _complaints(text: str, options: CompileOptions) -> Iterator[tuple[int, str]]:
    typed = {name for name, _ in options.headers}
    macros = {name: {_literal(value)} for name, value in options.defines}
    for match in _DEFINED.finditer(text):
        macros.setdefault(match["name"], set()).add(_literal(match["value"]))
    for match in _FAR.finditer(text):
        yield match.start(), "a comment within a directive: write it elsewhere"
    for match in _NAMED.finditer(text):
        directive = f"#{match['directive']}"
        for name in _names(match, macros):
            if name is None:
                yield match.start(), f"{directive} of a macro: write the name of the header"
            elif name not in typed and _is_elsewhere(name):
                yield match.start(), f"{directive} of a file outside of the toolkit and the task"
    plain = set()
    for condition in _CONDITION.finditer(text):
        for match in _ASKED.finditer(text, *condition.span()):
            name = match["quoted"] or match["angled"]
            if match["tested"] or (name and _is_plain(name, macros, typed)):
                plain.add(match.end())
    for match in _ASKED.finditer(text):
        if match.end() not in plain:
            yield match.start(), "a test for a file outside of the toolkit and the task"
    for match in _LINE.finditer(text):
        yield match.start(), "a line directive"
    for match in _NUMBERED.finditer(text):  # g++ takes a macro for the name of the file
        if match["more"] or match["macro"] in macros:
            yield match.start(), "a line directive"
    for match in _ALIASED.finditer(text):
        yield match.start(), "a macro whose name can be spelled in two ways"
    if _SPELLED_PRAGMA.search(text) and re.search(r"\bGCC\b", text):
        for match in re.finditer(r"\bdependency\b", text):
            yield match.start(), "a pragma that asks for a file"
    for match in _DEPENDENCY.finditer(text):
        yield match.start(), "a pragma that asks for a file"


def _literal(value: str) -> str | None:
    """The file that a macro names; None for one that cannot be decided, as within < and >."""
    literal = _LITERAL.fullmatch(value)
    return literal[1] if literal else None


def _names(match: re.Match[str], macros: dict[str, set[str | None]]) -> Iterator[str | None]:
    """The files that an include may mean; None for one that cannot be decided."""
    name = match["quoted"] if match["quoted"] is not None else match["angled"]
    if name is not None:
        yield name
        return
    macro = match["macro"] or ""
    yield from macros.get(macro, {None})
    macros[macro] = set()  # the next include of it says nothing new


def _is_plain(name: str, macros: dict[str, set[str | None]], typed: set[str]) -> bool:
    """Whether a question for a name means that name, and may be asked."""
    return not macros.keys() & set(re.findall(r"\w+", name)) and (
        name in typed or not _is_elsewhere(name)
    )


def _is_elsewhere(name: str) -> bool:
    """Whether a name leaves the folders that are searched, or lies beside the cell's own name."""
    plain = os.path.normpath(name.strip().replace("\\", "/"))
    if plain.startswith(("/", "..", "~")) or ":" in plain or "\0" in plain:
        return True
    try:
        return (_CELL_FOLDER / plain).is_file()
    except OSError:
        return False


def _line(text: str, splice: re.Pattern[str], at: int) -> int:
    """The 1-based line of an offset into the text without these splices."""
    for match in splice.finditer(text):
        if match.start() > at:
            break
        at += match.end() - match.start()
    return text.count("\n", 0, at) + 1
