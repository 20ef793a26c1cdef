"""Reports in colour where they are written to a terminal; not in notebooks, files or pipes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from rich.theme import Theme

_STYLES = {
    "claim": "bold",
    "title": "bold",
    "added": "green",
    "removed": "red",
    "place": "cyan",
    "critical": "bold red",
    "warning": "yellow",
    "note": "dim",
    "verified": "green",
    "before": "yellow",
    "after": "blue",
    "floor": "dim",
}
_PATTERNS = (
    r"\A(?P<claim>[^\n]+)",
    r"(?m)^(?P<title>[a-z][^\n]*:)$",
    r"(?m)^  (?P<added>\+.*)$",
    r"(?m)^  (?P<removed>-.*)$",
    r"(?m)^  (?P<place>@@.*)$",
    r"(?P<critical>\[critical\])",
    r"(?P<warning>\[warning\])",
    r"(?P<note>\[note\])",
    r"(?P<verified>\b(?:verified|passed|confirmed)\b)",
    r"(?m)^  [^+\-@#\n]+  (?P<before>#+) ",
    r"(?m)^  best +(?P<after>#+) ",
    r"(?m)^  floor +(?P<floor>#+) ",
)


def coloured(text: str, stream: TextIO) -> str:
    """``text`` as it is, or with colours where ``stream`` is a terminal that shows them.

    NO_COLOR and TERM are heeded, as rich does.
    """
    if not stream.isatty():
        return text
    from rich.console import Console
    from rich.text import Text

    shown = Text(text)
    for pattern in _PATTERNS:
        shown.highlight_regex(pattern, style_prefix="optiml.")
    console = Console(file=stream, theme=_theme(), highlight=False)
    with console.capture() as written:
        console.print(shown, soft_wrap=True, end="")
    return written.get()


def _theme() -> Theme:
    from rich.theme import Theme

    return Theme({f"optiml.{name}": style for name, style in _STYLES.items()})
