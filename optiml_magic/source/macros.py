"""Whole numbers that a text names, which its directives may name as its code does.

They are macros, and constants outside of all functions: ``const int N = 1 << 20;``, and
``enum { W = 1920 };``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from optiml_magic.errors import SourceError
from optiml_magic.source.directives import Directive, RepeatDirective
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.lexer import Lexed

_DEFINED = re.compile(r"([A-Za-z_]\w*)(?:[ \t]+(\S.*))?$", re.ASCII | re.DOTALL)
_CONSTANTS = re.compile(
    r"(?<![\w,(<])(?=[sic_])(?=[^;={]*\bconst(?:expr)?\b)"  # few places look far ahead
    r"(?:(?:static|inline|const|constexpr|__device__|__constant__)\s+)+"
    r"(?:(?:unsigned|signed|int|long|short|size_t|u?int(?:8|16|32|64)_t|const)\s+)+"
    r"(?P<names>[A-Za-z_]\w*\s*=[^;{}]*);",
    re.ASCII,
)
_ENUMERATION = re.compile(r"\benum\b(?:\s+[A-Za-z_]\w*)?\s*\{(?P<names>[^{};]*)\}\s*;", re.ASCII)
_NAMED = re.compile(r"\s*([A-Za-z_]\w*)\s*=(.*)", re.ASCII | re.DOTALL)
_DECLARED = r"\b(?:unsigned|int|long|short|char|bool|auto|float|double|\w+_t)\s+(?:const\s+)?{}\b"
_D = TypeVar("_D", bound=Directive)


def whole_numbers(lexed: Lexed) -> dict[str, int]:
    """Those that are defined once, wherever the text goes, with their values."""
    found = _macros(lexed)
    if "const" not in lexed.code and "enum" not in lexed.code:
        return found
    # A parameter or a local of that name may be another number.
    known = [(n, v, 1) for n, v in _constants(lexed)] + [(n, v, 0) for n, v in _enumerators(lexed)]
    for name, value, own in known:
        alone = len(re.findall(_DECLARED.format(name), lexed.code)) <= own
        if alone and name not in found:
            try:
                found[name] = parse_expression(value).evaluate(found)
            except SourceError:
                continue
    return found


def _constants(lexed: Lexed) -> Iterator[tuple[str, str]]:
    """Names and values of constants that stand outside of all braces."""
    for constants in _CONSTANTS.finditer(outside(lexed)):
        # The parts of a value in parentheses are none by themselves.
        for part in re.split(r",(?![^()]*\))", constants["names"]):
            named = _NAMED.match(part)
            if named is not None:
                yield named[1], named[2].strip()


def _enumerators(lexed: Lexed) -> Iterator[tuple[str, str]]:
    """Names and values of enumerations that stand outside of all braces, where these are said."""
    shown = outside(lexed)
    for listed in _ENUMERATION.finditer(lexed.code):
        if shown[listed.start()] == "e":
            for part in re.split(r",(?![^()]*\))", listed["names"]):
                named = _NAMED.match(part)
                if named is not None:
                    yield named[1], named[2].strip()


def outside(lexed: Lexed) -> str:
    """The code with what stands within braces blanked, length kept."""
    found, depth = list[str](), 0
    for piece in re.split(r"([{}])", lexed.code):
        depth += {"{": 1, "}": -1}.get(piece, 0)
        found.append(piece if not depth or piece in "{}" else re.sub(r"[^\n]", " ", piece))
    return "".join(found)


def _macros(lexed: Lexed) -> dict[str, int]:
    found: dict[str, int] = {}
    seen, depth = set[str](), 0
    for line in lexed.lines:
        if line.word in ("if", "ifdef", "ifndef"):
            depth += 1
        elif line.word == "endif":
            depth -= 1
        defined = _DEFINED.match(line.rest) if line.word in ("define", "undef") else None
        if defined is None:
            continue
        name, value = defined.groups()
        again = name in seen or depth > 0 or value is None
        seen.add(name)
        try:
            if again:
                found.pop(name, None)
            else:
                found[name] = parse_expression(value).evaluate(found)
        except SourceError:
            continue
    return found


def substituted(directive: _D, values: Mapping[str, int]) -> _D:
    """The directive with these names replaced in all of its expressions."""

    def new(part: object) -> object:
        if isinstance(part, Expression) and not part.names.isdisjoint(values):
            return part.substituted(values)
        if isinstance(part, tuple) and any(isinstance(one, Expression) for one in part):
            return tuple(map(new, part))
        return substituted(part, values) if isinstance(part, RepeatDirective) else part

    old = {one.name: getattr(directive, one.name) for one in fields(directive)}
    changed: dict[str, Any] = {
        name: made for name, part in old.items() if (made := new(part)) != part
    }
    return replace(directive, **changed) if changed else directive
