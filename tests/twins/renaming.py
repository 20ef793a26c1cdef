"""Names of a program changed throughout, in its code and in its directives."""

from __future__ import annotations

import re
from collections.abc import Mapping

from optiml_magic.source.syntax import parse, walk

from .tree import edited, functions, names, replace, src

_DIRECTIVE = re.compile(r"^(#pragma optiml (?:launch \w+)?)(.*)$", re.MULTILINE)


def all_names(text: str) -> list[str]:
    """The parameters and locals of all functions, each once, in the order of the text."""
    syntax = parse(text)
    return list(dict.fromkeys(n.name for f in functions(syntax) for n in names(f)))


def with_names(text: str, renamed: Mapping[str, str]) -> str | None:
    """The text with names changed at once, so that two may change places."""
    made = [
        replace(node, renamed[src(node)])
        for function in functions(parse(text))
        for node in walk(function)
        if node.type == "identifier" and src(node) in renamed
    ]
    changed = edited(text, made)
    if changed is None:
        return None

    def directive(found: re.Match[str]) -> str:
        rest = re.sub(r"\b[A-Za-z_]\w*\b(?!\s*\()", lambda m: renamed.get(m[0], m[0]), found[2])
        return found[1] + rest

    return _DIRECTIVE.sub(directive, changed)
