"""Where the comments, strings and preprocessor lines of a text are; all offsets count characters.

It follows C's translation phases as far as directives need them: a backslash joins lines, a comment
is a space, and a ``#`` starts a preprocessor line only as the first thing on its line.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass

_PIECE = re.compile(
    r"""
      (?P<comment> //(?:\\\r?\n|[^\n])* | /\*.*?(?:\*/|\Z) )
    | (?P<string> (?:u8|[uUL])?R"(?P<mark>[^()\\\s"]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
        | "(?:\\\r\n|\\.|[^"\\\n])*"? | '(?:\\\r\n|\\.|[^'\\\n])*'? )
    | (?P<splice> \\\r?\n )
    | (?P<newline> \n )
    | (?P<blank> [ \t\r\f\v]+ )
    | (?P<word> \d[\w.]*(?:'\w+)* | \w+ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_NOT_NEWLINE = re.compile(r"[^\n]")


@dataclass(frozen=True)
class PreprocessorLine:
    """One logical line from its ``#``; ``text`` is its span with comments and splices blanked."""

    start: int
    end: int
    text: str

    @property
    def word(self) -> str:
        """What follows the ``#``: ``include``, ``pragma``, ``if`` ..."""
        match = re.match(r"#\s*(\w*)", self.text)
        return match[1] if match else ""

    @property
    def rest(self) -> str:
        """What follows that word."""
        match = re.match(r"#\s*\w*(.*)", self.text, re.DOTALL)
        return match[1].strip() if match else ""


@dataclass(frozen=True)
class Lexed:
    """``code`` is the text with comments, strings and preprocessor lines blanked, length kept."""

    text: str
    code: str
    lines: tuple[PreprocessorLine, ...]
    newlines: tuple[int, ...]

    def line_at(self, offset: int) -> int:
        """The 1-based line of a character offset."""
        return bisect_right(self.newlines, offset - 1) + 1

    def active(self) -> tuple[PreprocessorLine, ...]:
        """The preprocessor lines that no ``#if 0`` or ``#if 1 ... #else`` turns off."""
        kept = []
        stack: list[_Branch] = []
        for line in self.lines:
            if line.word in ("if", "ifdef", "ifndef"):
                stack.append(_Branch.of(line))
            elif line.word in ("elif", "else", "elifdef", "elifndef") and stack:
                stack[-1] = stack[-1].other(line)
            elif line.word == "endif" and stack:
                stack.pop()
            elif all(branch.on for branch in stack):
                kept.append(line)
        return tuple(kept)


@dataclass(frozen=True)
class _Branch:
    """One conditional: is its current branch on, and was one with a constant condition taken."""

    on: bool
    decided: bool

    @classmethod
    def of(cls, line: PreprocessorLine) -> _Branch:
        constant = line.rest if line.word == "if" else ""
        return cls(on=constant not in ("0", "false"), decided=constant in ("1", "true"))

    def other(self, line: PreprocessorLine) -> _Branch:
        if self.decided:
            return _Branch(on=False, decided=True)
        if line.word == "elif":
            return _Branch.of(PreprocessorLine(0, 0, f"#if {line.rest}"))
        return _Branch(on=True, decided=False)


def lex(text: str) -> Lexed:
    """Split ``text``; any text gives a result, an unfinished comment or string runs to its end."""
    code: list[str] = []
    logical: list[str] = []
    lines: list[PreprocessorLine] = []
    start: int | None = None
    fresh = True
    for piece in _PIECE.finditer(text):
        kind, spelled = piece.lastgroup, piece[0]
        if piece["mark"] is not None:
            kind = "string"
        if kind == "newline":
            if start is not None:
                lines.append(_line(start, logical))
            start, logical, fresh = None, [], True
        elif fresh and spelled == "#":
            start = piece.start()
        fresh = fresh and kind in ("newline", "blank", "splice", "comment")
        if start is not None:
            logical.append(" " * len(spelled) if kind in ("comment", "splice") else spelled)
        hidden = start is not None or kind in ("comment", "string")
        code.append(_NOT_NEWLINE.sub(" ", spelled) if hidden else spelled)
    if start is not None:
        lines.append(_line(start, logical))
    newlines = tuple(match.start() for match in re.finditer("\n", text))
    return Lexed(text, "".join(code), tuple(lines), newlines)


def _line(start: int, logical: list[str]) -> PreprocessorLine:
    text = "".join(logical).rstrip("\r")
    return PreprocessorLine(start, start + len(text), text)
