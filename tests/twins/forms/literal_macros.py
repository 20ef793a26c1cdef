"""Whole numbers as macros."""

from __future__ import annotations

from tests.twins.literals import named


def apply(text: str) -> str | None:
    return named(text, "SIZE_{}", lambda name, value: f"#define {name} {value}")
