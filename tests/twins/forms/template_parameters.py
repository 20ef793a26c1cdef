"""The kernel as a template of its element's type and of its block's width."""

from __future__ import annotations

import re

from optiml_magic.source.syntax import name_of
from tests.twins.tree import before, edited, functions, parse, replace, src, walk

_LAUNCH = re.compile(r"^(#pragma optiml launch )(\w+)(.* block\((\d+).*)$", re.MULTILINE)


def apply(text: str) -> str | None:
    launches = list(_LAUNCH.finditer(text))
    if len(launches) != 1 or "template" in text or re.search(r"\b[TW]\b", text):
        return None
    kernel, width = launches[0][2], launches[0][4]
    made, given = [], ""
    for function in functions(parse(text)):
        if name_of(function) != kernel:
            continue
        floats = [n for n in walk(function) if n.type == "primitive_type" and src(n) == "float"]
        sizes = [n for n in walk(function) if n.type == "number_literal" and src(n) == width]
        spelled = ", ".join((["typename T"] if floats else []) + (["int W"] if sizes else []))
        given = ", ".join((["float"] if floats else []) + ([width] if sizes else []))
        if spelled:
            made = [replace(n, "T") for n in floats] + [replace(n, "W") for n in sizes]
            made.append(before(function, f"template <{spelled}>\n"))
    changed = edited(text, made)
    return changed and _LAUNCH.sub(rf"\g<1>\g<2><{given}>\g<3>", changed)
