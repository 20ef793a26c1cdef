"""A blank between all tokens, braces on lines of their own, and comments that look like code."""

from __future__ import annotations

from tests.twins.tokens import Token, printed

_COMMENTS = (
    "/* for (int k = 0; k < 3; ++k) out[k] = 0; */ ",
    "// if (i >= n) return;\n\t",
    "/* not a[i * n + j] */\n",
)


def _layout(before: Token | None, token: Token) -> str:
    if before is None:
        return ""
    if before.text in ("{", "}", ";") or token.text in ("{", "}"):
        return "\n\t"
    if before.text == "=":
        return " " + _COMMENTS[token.at % len(_COMMENTS)]
    return "  "


def apply(text: str) -> str | None:
    return printed(text, _layout)
