"""The preprocessor lines of a text, and the text with all that holds no name blanked."""

from __future__ import annotations

import re
from dataclasses import dataclass

from optiml_magic.kernels.preprocessor.tokens import (
    BLOCK_COMMENT,
    IN_NAME,
    INSIDE_CHARACTER,
    INSIDE_STRING,
    LETTER,
    LINE_COMMENT,
    NUMBER,
    SUFFIX,
)

OPENING = frozenset({"if", "ifdef", "ifndef"})
MIDDLE = frozenset({"elif", "elifdef", "elifndef", "else"})
_NOT_IN_NAME = rf"(?<!{IN_NAME})"
_IS_RAW = (
    rf'(?:(?<={_NOT_IN_NAME}R")|(?<={_NOT_IN_NAME}[uUL]R")|(?<={_NOT_IN_NAME}u8R"))'
    rf'(?P<mark>[^()\\\s"]{{0,16}})\(.*?(?:\)(?P=mark)"|\Z)'
)
# Every choice begins with a sign of its own, which makes the search ten times as fast as one that
# has to look at every number. ``1'000'000``, which needs that, is rare.
_HIDDEN = re.compile(
    rf"""{LINE_COMMENT}|{BLOCK_COMMENT}|"(?:{_IS_RAW}|{INSIDE_STRING}"?){SUFFIX}"""
    rf"""|'{INSIDE_CHARACTER}'?{SUFFIX}""",
    re.DOTALL | re.ASCII,
)
_HIDDEN_OR_NUMBER = re.compile(rf"{_NOT_IN_NAME}{NUMBER}|{_HIDDEN.pattern}", re.DOTALL | re.ASCII)
_SEPARATED = re.compile(r"[\da-fA-F]'[\da-fA-F]", re.ASCII)
_SIGN = re.compile(r"#|%:")
_LINE = re.compile(
    r"(?:#|%:)(?:[ \t\v\f]|\\\r?\n)*+(?P<word>\w*)(?P<rest>(?:[^\\\n]|\\\r?\n|\\)*+)", re.ASCII
)
_SPLICE = re.compile(r"\\\r?\n")
_NAME = re.compile(rf"(?:\s|/\*.*?\*/)*+(?P<name>{LETTER}{IN_NAME}*+)", re.DOTALL | re.ASCII)
_POPPED = re.compile(r'pop_macro\s*\(\s*"([^"]*)"')
_INCLUDED = re.compile(r'\s*(?:<([^>\n]+)>|"([^"\n]+)")')
# Headers of the toolkit and of the standard libraries, whose macros ``is_compilers`` knows.
_TOOLKIT = re.compile(
    r"[a-z_]+|(?:assert|complex|ctype|errno|fenv|float|inttypes|iso646|limits|locale|math|setjmp"
    r"|signal|stdalign|stdarg|stdatomic|stdbool|stddef|stdint|stdio|stdlib|string|tgmath|time"
    r"|uchar|wchar|wctype|mma|nvrtc|nvvm|texture_\w+|surface_\w+|vector_\w+|driver_\w+|device_\w+"
    r"|channel_descriptor|library_types|builtin_types|common_functions|host_\w+|math_\w+|sm_\w+"
    r"|cu(?:da|blas|fft|rand|sparse|solver|pti)\w*|cooperative_groups)\.hp?p?"
    r"|(?:cuda|cub|thrust|nv|crt|cooperative_groups|cooperative_groups_helpers)/[\w/.]+",
    re.ASCII,
)


@dataclass(frozen=True)
class Line:
    """One logical line from its ``#``: ``word`` is what it does, ``rest`` what follows as it is."""

    start: int
    end: int
    word: str
    rest: str

    @property
    def name(self) -> str:
        """The name that it defines or asks for, or ``""``."""
        match = _NAME.match(self.rest)
        return match["name"] if match else ""

    @property
    def changed(self) -> str:
        """The name of which other things hold after this line, or ``""``."""
        if self.word in ("define", "undef"):
            return self.name
        popped = _POPPED.search(self.rest) if self.word == "pragma" else None
        return popped[1] if popped else ""

    @property
    def is_foreign(self) -> bool:
        """Whether it includes what may define any name."""
        if self.word not in ("include", "include_next", "import", "embed"):
            return False
        match = _INCLUDED.match(self.rest)
        return match is None or _TOOLKIT.fullmatch(match[1] or match[2]) is None


def without_literals(text: str) -> str:
    """The text with comments and strings blanked, length kept, no newlines in them."""
    separated = "'" in text and _SEPARATED.search(text) is not None
    return (_HIDDEN_OR_NUMBER if separated else _HIDDEN).sub(_blank, text)


def _blank(match: re.Match[str]) -> str:
    text = match[0]
    return (" " if text.startswith("/") else '"') * len(text)


def lines(text: str, clean: str) -> list[Line]:
    """The preprocessor lines of a text; ``clean`` is the text without its literals."""
    found: list[Line] = []
    end = before = 0
    for sign in _SIGN.finditer(clean):
        at = sign.start()
        newline, first = clean.rfind("\n", before, at), not before
        before = at + 1
        # A second sign on a line starts nothing, nor does one on a line that a backslash joins.
        joined = clean.endswith(("\\\n", "\\\r\n"), 0, newline + 1)
        if at < end or joined or (newline < 0 and not first) or clean[newline + 1 : at].strip():
            continue
        match = _LINE.match(clean, at)
        assert match is not None
        end = match.end() - clean.endswith("\r", at, match.end())
        rest = text[match.end("word") : end]
        found.append(Line(at, end, match["word"], _SPLICE.sub("", rest)))
    return found
