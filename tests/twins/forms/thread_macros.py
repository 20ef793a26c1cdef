"""A thread's number in the grid as a macro without parameters."""

from __future__ import annotations

from tests.twins.indices import with_threads


def apply(text: str) -> str | None:
    return with_threads(text, "GID_{}", lambda axis, said: f"#define GID_{axis} ({said})")
