"""All on one line, with no blank that the language does not need."""

from __future__ import annotations

from tests.twins.tokens import Token, printed

_SIGNS = "+-&|<>=!*/:"


def _gap(before: str, after: str) -> bool:
    wordy = (before[-1].isalnum() or before[-1] == "_") and (after[0].isalnum() or after[0] == "_")
    return wordy or (before[-1] in _SIGNS and after[0] in _SIGNS)


def _layout(before: Token | None, token: Token) -> str:
    return " " if before is not None and _gap(before.text, token.text) else ""


def apply(text: str) -> str | None:
    return printed(text, _layout)
