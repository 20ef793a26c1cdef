"""The difference of two programs, as everyone reads it."""

from __future__ import annotations

import difflib


def unified(before: str, after: str, *, name: str = "kernel") -> str:
    """A unified diff with three lines of context; empty where the texts are equal."""
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{name} (input)", f"{name} (best)", lineterm=""
    )
    return "\n".join(lines)
