"""The uses of macros in a text."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from optiml_magic.kernels.preprocessor.conditionals import Passage, Span
from optiml_magic.kernels.preprocessor.expansion import Expander
from optiml_magic.kernels.preprocessor.macros import Macro, Table
from optiml_magic.kernels.preprocessor.tokens import IN_NAME, Source, UnfaithfulError, joined, read

_NAME = re.compile(rf"{IN_NAME}++", re.ASCII)
_BEFORE = re.compile(IN_NAME, re.ASCII)
_MANY = 50  # names, from which on one look at every word takes less time than a search for each
_CALLED = re.compile(r"\s*+[(\\]")
_PREFIX = re.compile(r"(?:u8|[uUL])?R?", re.ASCII)
_BRACKETS = re.compile(r"[()\[\]{}]")
_ASSIGNS = re.compile(r"\([^,]*?(?:\+\+|--|[^=!<>]=(?!=)|<<=|>>=)[^,]*,")
_LAST = re.compile(r"\S(?=\s*\Z)")
_ENDED = re.compile(r"\s*+;")
_FAR = 500  # where the statement before a use ends, comments in between
_LONGEST = 100  # what may stand of a number before a name in it
_NUMBER_BEFORE = re.compile(rf"(?<!{IN_NAME})\.?\d(?:[eEpP][+-]|'?{IN_NAME}|\.)*\Z", re.ASCII)
_SPLICE_BEFORE = re.compile(rf"{IN_NAME}\\\r?\n\Z", re.ASCII)
_SPLICE_BEHIND = re.compile(rf"\\\r?\n{IN_NAME}", re.ASCII)


def uses(
    raw: str, clean: str, passed: Sequence[Passage], expander: Expander
) -> Iterator[tuple[int, int, str]]:
    """The uses of macros in order: where each starts and ends, and what it expands to."""
    table = expander.table
    names = {change[0] for each in passed for change in each.changes} | set(table)
    places = iter(_places(clean, names))
    place = next(places, None)
    at = 0
    for each in (*passed, Passage(len(raw), len(raw), "line")):
        while place is not None and place[0] < each.end:
            if at <= place[0] < each.start and _is_called(place, table, clean):
                use = _use(raw, place, each.start, expander)
                if use is not None:
                    start, at, text = use
                    yield start, at, _stated(text) if _is_statement(clean, start, at) else text
            place = next(places, None)
        table.update(each.changes)
        at = each.end


def _places(clean: str, names: Collection[str]) -> list[Span]:
    """Where any of the names stands, in order."""
    if len(names) > _MANY:
        return [match.span() for match in _NAME.finditer(clean) if match[0] in names]
    found: list[Span] = []
    for name in filter(None, names):
        at = clean.find(name)
        while at >= 0:
            match = _NAME.match(clean, at)
            if match is not None and match[0] == name and not _BEFORE.match(clean[at - 1 : at]):
                found.append(match.span())
            at = clean.find(name, at + 1)
    return sorted(found)


def _is_called(place: Span, table: Table, clean: str) -> bool:
    """Whether a name stands where it is a macro, one with parameters before a parenthesis."""
    macro = table.get(clean[slice(*place)])
    if not isinstance(macro, Macro):
        return False
    return macro.parameters is None or _CALLED.match(clean, place[1]) is not None


def _use(raw: str, name: Span, limit: int, expander: Expander) -> tuple[int, int, str] | None:
    """One use, or None where its name stays as it is."""
    start, end = name
    if expander.left < 0 or _is_part(raw, name):
        return None
    source = Source(read(raw, start, limit), start)
    try:
        first = source.take()
        tokens = expander.expand([first] if first else [], source)
    except UnfaithfulError:
        return None
    text = joined(tokens)
    if (text == raw[start:end] and source.position == end) or text.startswith(("#", "%:")):
        return None  # it stands for itself, or would read as a preprocessor line
    newlines = raw.count("\n", start, source.position)
    return start, source.position, (text + "\n" * newlines) or " "


def _is_statement(clean: str, start: int, end: int) -> bool:
    """Whether a use is all of a statement."""
    before = _LAST.search(clean[max(0, start - _FAR) : start])
    return before is not None and before[0] in ";{}" and _ENDED.match(clean, end) is not None


def _stated(text: str) -> str:
    """``(a = b, c = d)`` as a statement of its own: the grammar has no assignments so."""
    depth = 0
    for found in _BRACKETS.finditer(text) if text.startswith("(") else ():
        depth += 1 if found[0] in "([{" else -1
        if not depth:
            whole = not text[found.end() :].strip() and _ASSIGNS.match(text) is not None
            return f" {text[1 : found.start()]} {text[found.end() :]}" if whole else text
    return text


def _is_part(raw: str, name: Span) -> bool:
    """Whether the name belongs to a number, to a string or to a name on more than one line."""
    start, end = name
    behind = raw[end : end + 4]
    if behind[:1] in ('"', "'") and _PREFIX.fullmatch(raw, start, end):
        return True
    if behind[:1] == "\\" and _SPLICE_BEHIND.match(behind):
        return True
    if raw[max(0, start - 1) : start] not in (".", "+", "-", "'", "\n"):
        return False
    before = raw[max(0, start - _LONGEST) : start]
    return (_NUMBER_BEFORE.search(before) or _SPLICE_BEFORE.search(before)) is not None
