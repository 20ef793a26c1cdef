"""Kernels whose block has another shape."""

from __future__ import annotations

import re
from collections.abc import Mapping

from optiml_magic.source.syntax import parse, walk

from .tree import edited, replace, src

LAUNCH = re.compile(r"^#pragma optiml launch .*$", re.MULTILINE)


def with_threads(text: str, spelled: Mapping[str, str]) -> str | None:
    """The text with the builtins of one block spelled otherwise."""
    made = [
        replace(node, spelled[src(node)])
        for node in walk(parse(text).root)
        if node.type == "field_expression" and src(node) in spelled
    ]
    return edited(text, made)
