"""Parts of every page: tables, sections that open, rows of labels, cards side by side.

Styles are inline, and only those that JupyterLab leaves in the output of a notebook that nobody
trusts: no variable of a theme, no `inherit`, no `sticky`, no `user-select`. Text keeps the colour
of the page around it. Where colour says something it has a contrast above 4 on white and on #111,
and above 3.5 on the tints; where styles are taken away, tables, lists and headings stay.
"""

from __future__ import annotations

from collections.abc import Sequence

from optiml_magic.model.finding import Severity
from optiml_magic.reports.markup import Markup, element

GOOD, BAD, WARN, QUIET = "#1f8f45", "#d9453a", "#a87400", "#7a7a7a"
SEVERITY: dict[Severity, str] = {"critical": BAD, "warning": WARN, "note": QUIET}
MARKS: dict[Severity, str] = {"critical": "\u25cf", "warning": "\u25b2", "note": "\u25cb"}
MONO = "font-family:ui-monospace,Menlo,Consolas,monospace;font-size:12px;line-height:1.45"
SMALL = "font-size:12px"
_LINE = "rgba(128,128,128,0.35)"
_CELL = "padding:3px 14px 3px 0;text-align:left;vertical-align:top"
_WRAPPED = "white-space:pre-wrap"
_PILL = (
    "display:inline-block;padding:1px 8px;margin:0 6px 0 0;border-radius:10px;font-size:12px;"
    "white-space:nowrap"
)
# A list item, with its triangle, also where a page makes it a block, as the classic one does.
_SUMMARY = "cursor:pointer;display:list-item;font-weight:600;font-size:14px;padding:4px 0"
_SECTION = f"margin:6px 0;border-top:1px solid {_LINE}"
_COLUMNS = "display:flex;flex-wrap:wrap;gap:12px"
_COLUMN = "flex:1 1 400px;min-width:0;max-width:700px"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Markup:
    """Rows of cells, text to the left; no head where it is empty."""
    header = [
        element("tr", *(element("th", name, scope="col", style=_CELL) for name in head))
    ] * bool(head)
    body = [element("tr", *(element("td", cell, style=_CELL) for cell in row)) for row in rows]
    style = "border-collapse:collapse;font-size:13px;margin:4px 0"
    return element("div", element("table", *header, *body, style=style), style="overflow-x:auto")


def facts(rows: Sequence[tuple[str, str]]) -> Markup:
    """Facts by name; line breaks in them stay."""
    return table([], [(name, element("div", fact, style=_WRAPPED)) for name, fact in rows])


def section(title: str, *content: str, is_open: bool = True) -> Markup:
    """A title that folds what stands below it."""
    attributes = {"open": "open"} if is_open else {}
    summary = element("summary", title, style=_SUMMARY)
    return element("details", summary, *content, style=_SECTION, **attributes)


def pill(text: str, color: str = QUIET) -> Markup:
    """A short label with a border in its colour."""
    style = f"{_PILL};border:1px solid {color};color:{color}"
    return element("span", text, style=style)


def columns(parts: Sequence[Markup]) -> Markup:
    """Side by side where the width allows, else below each other."""
    return element("div", *(element("div", p, style=_COLUMN) for p in parts), style=_COLUMNS)


def quiet(text: str, tag: str = "span") -> Markup:
    """Text beside the main point."""
    return element(tag, text, style=f"color:{QUIET};{SMALL}")


def copyable(text: str) -> Markup:
    """Text to copy without a script: a click and Ctrl+A select it and nothing else."""
    rows = str(min(24, text.count("\n") + 2))
    style = f"{MONO};width:100%;box-sizing:border-box;white-space:pre;overflow-x:auto"
    about = "click here, then Ctrl+A and Ctrl+C"
    return element(
        "textarea",
        text,
        rows=rows,
        readonly="readonly",
        spellcheck="false",
        title=about,
        style=style,
    )
