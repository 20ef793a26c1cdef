"""The difference of two programs, as everyone reads it."""

from __future__ import annotations

import difflib

from optiml_magic.printable import printable


def unified(before: str, after: str, *, name: str = "kernel") -> str:
    """A unified diff from the input kernel to the best; empty where the texts are equal."""
    return between(before, after, f"{name} (input)", f"{name} (best)")


def between(before: str, after: str, old: str, new: str) -> str:
    """A unified diff with three lines of context between two programs of these names."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), printable(old), printable(new), lineterm=""
    )
    return "\n".join(lines)
