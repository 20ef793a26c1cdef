"""Macros of a text that stand for whole numbers, which its directives may name as its code does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, TypeVar

from optiml_magic.errors import SourceError
from optiml_magic.source.directives import Directive, RepeatDirective
from optiml_magic.source.expressions import Expression, parse_expression
from optiml_magic.source.lexer import Lexed

_DEFINED = re.compile(r"([A-Za-z_]\w*)(?:[ \t]+(\S.*))?$", re.ASCII | re.DOTALL)
_D = TypeVar("_D", bound=Directive)


def whole_numbers(lexed: Lexed) -> dict[str, int]:
    """Those that are defined once, wherever the text goes, with their values."""
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
