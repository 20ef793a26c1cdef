"""A user's words as the comment of a kernel."""

from __future__ import annotations

from string import whitespace


def commented(words: str) -> str:
    """Words as lines of C++; none of them ends in a backslash, which joins the next line to it."""
    lines = words.strip().splitlines()
    return "".join(f"// {line}".rstrip(f"{whitespace}\\") + "\n" for line in lines)
