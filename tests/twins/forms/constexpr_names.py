"""Whole numbers as ``constexpr int`` with names."""

from __future__ import annotations

from tests.twins.literals import named


def apply(text: str) -> str | None:
    return named(text, "kSize{}", lambda name, value: f"constexpr int {name} = {value};")
