"""The tokens of the preprocessor: read from a text, joined to one, pasted and made a string.

A text is a Latin-1 string, one character for each byte of the UTF-8 text, so that offsets count
bytes; the bytes of letters beyond ASCII are letters here. ``lexer.lex`` tells a text apart as
well, character kind by character kind, but takes more time than a whole preprocessing may.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

LETTER = r"[A-Za-z_$\x80-\xff]"
IN_NAME = r"[\w$\x80-\xff]"
NUMBER = rf"\.?\d(?:[eEpP][+-]|'?{IN_NAME}|\.)*+"
LINE_COMMENT = r"//(?:\\\r?\n|[^\n])*+"
BLOCK_COMMENT = r"/\*.*?(?:\*/|\Z)"
PREFIX = r"(?:u8|[uUL])"
RAW_STRING = rf'{PREFIX}?R"(?P<mark>[^()\\\s"]{{0,16}})\(.*?(?:\)(?P=mark)"|\Z)'
INSIDE_STRING = r'(?:\\(?:\r\n|.)|[^"\\\n])*+'
INSIDE_CHARACTER = r"(?:\\(?:\r\n|.)|[^'\\\n])*+"
SUFFIX = rf"(?:{LETTER}{IN_NAME}*+)?"
# What a backslash at the end of a line cuts in two is one token to a compiler: such a text is bad.
_TOKEN = re.compile(
    rf"""
      (?P<bad> (?<=\S)\\\r?\n(?=\S) )
    | (?P<white> (?: \s | \\\r?\n | {LINE_COMMENT} | {BLOCK_COMMENT} )++ )
    | (?P<string> (?: {RAW_STRING} | {PREFIX}?"{INSIDE_STRING}"
        | {PREFIX}?'{INSIDE_CHARACTER}' ) {SUFFIX} )
    | (?P<number> {NUMBER} )
    | (?P<name> {LETTER}{IN_NAME}*+ )
    | (?P<quote> ["'] )
    | (?P<operator> <<<|>>>|->\*|<<=|>>=|\.\.\.|%:%:|::|\+\+|--|->|\.\*|&&|\|\||\#\#|<<|>>
        |[-+*/%&|^!=<>]=|%:|%>|<:|:>|<%|. )
    """,
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_NAME = re.compile(rf"{LETTER}{IN_NAME}*+", re.ASCII)
_ALONE = frozenset("()[]{},; \t\r\n\v\f")
_ENDS_IN_NUMBER = re.compile(rf"(?<!{IN_NAME})\d(?:{IN_NAME}|[.'])*\Z", re.ASCII)
_LONGEST = 40
_IN_WORD = frozenset(filter(re.compile(rf"{IN_NAME}|[\"']", re.ASCII).match, map(chr, range(256))))
_ESCAPED = re.compile(r'["\\]')
_NOTHING: frozenset[str] = frozenset()


class UnfaithfulError(Exception):
    """What stands there cannot be expanded as a compiler would; it never leaves this package."""


class Token(NamedTuple):
    """``white`` tells whether white space stood before it, ``hidden`` what it does not expand to.

    The hidden name ``DOUBT`` marks a name that some macro of the compiler or of a header may have.
    """

    text: str
    white: bool = False
    hidden: frozenset[str] = _NOTHING

    @property
    def is_name(self) -> bool:
        return _NAME.fullmatch(self.text) is not None


DOUBT = "?"
EMPTY = Token("")  # what an empty argument is beside ``##``


def read(text: str, start: int = 0, end: int | None = None) -> Iterator[tuple[Token, int]]:
    """The tokens of ``text[start:end]`` and where each ends; UnfaithfulError at half a token."""
    white = False
    for match in _TOKEN.finditer(text, start, len(text) if end is None else end):
        kind = match.lastgroup
        if kind in ("bad", "quote"):
            raise UnfaithfulError
        if kind == "white":
            white = True
        else:
            yield Token(match[0], white), match.end()
            white = False


@dataclass
class Source:
    """A cursor over tokens; ``position`` is where the last one taken ends."""

    tokens: Iterator[tuple[Token, int]]
    position: int
    _ahead: tuple[Token, int] | None = field(default=None, init=False)

    def peek(self) -> Token | None:
        """The next token, left where it is."""
        if self._ahead is None:
            self._ahead = next(self.tokens, None)
        return self._ahead[0] if self._ahead else None

    def take(self) -> Token | None:
        token = self.peek()
        if self._ahead is not None:
            self.position = self._ahead[1]
        self._ahead = None
        return token


def glues(left: str, right: str) -> bool:
    """Whether two tokens, or texts that end and start with them, would read as others if joined."""
    end, start = left[-1], right[0]
    if end in _ALONE or start in _ALONE:
        return False
    is_word, begins_word = end in _IN_WORD, start in _IN_WORD
    if is_word and not begins_word:
        if start == ".":
            return bool(_ENDS_IN_NUMBER.search(left[-_LONGEST:]))
        return start in "+-" and end in "eEpP"
    if end == ".":
        return start in ".*" or start.isdigit() or bool(_ENDS_IN_NUMBER.search(left[-_LONGEST:]))
    if start == ".":
        return False
    return is_word == begins_word


def joined(tokens: Iterable[Token]) -> str:
    """The tokens as a text that reads as these tokens."""
    parts: list[str] = []
    for token in tokens:
        if parts and (token.white or glues(parts[-1], token.text)):
            parts.append(" ")
        parts.append(token.text)
    return "".join(parts)


def pasted(left: Token, right: Token) -> Token:
    """What ``##`` makes of two tokens."""
    if not left.text or not right.text:
        return (left if left.text else right)._replace(white=left.white)
    match = _TOKEN.fullmatch(left.text + right.text)
    doubtful = DOUBT in left.hidden or DOUBT in right.hidden
    if doubtful or match is None or match.lastgroup in ("bad", "white", "quote"):
        raise UnfaithfulError
    return Token(match[0], left.white, left.hidden & right.hidden)


def as_string(tokens: Sequence[Token]) -> str:
    """What ``#`` makes of an argument."""
    parts: list[str] = []
    for token in tokens:
        if DOUBT in token.hidden or "\n" in token.text:
            raise UnfaithfulError
        if parts and token.white:
            parts.append(" ")
        literal = token.text[-1] in "\"'" or ('"' in token.text or "'" in token.text)
        parts.append(_ESCAPED.sub(r"\\\g<0>", token.text) if literal else token.text)
    text = '"' + "".join(parts) + '"'
    match = _TOKEN.fullmatch(text)
    if match is None or match.lastgroup != "string":
        raise UnfaithfulError
    return text
