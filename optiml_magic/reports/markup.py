"""HTML built from elements, so that text can only ever arrive escaped."""

from __future__ import annotations

from html import escape

from optiml_magic.printable import printable

VOID = frozenset({"meta", "br", "img"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


# A file of ours asks nobody for anything and runs nothing, whatever a text in it says.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_PAGE = "font-family:system-ui,sans-serif;max-width:{width};margin:2em auto;padding:0 1em"


def document(title: str, *content: Markup, width: str = "1000px") -> str:
    """A whole page for a file, in a light theme or a dark one as the reader's system has it."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
    )
    body = element("body", element("h1", title), *content, style=_PAGE.format(width=width))
    return "<!doctype html>\n" + element("html", head, body, lang="en")


def element(tag: str, *children: str, **attributes: str) -> Markup:
    """One element; children that are not Markup arrive printable and escaped.

    ``class_`` means ``class``.
    """
    given = "".join(f' {n.rstrip("_")}="{escape(v, quote=True)}"' for n, v in attributes.items())
    if tag in VOID:
        return Markup(f"<{tag}{given}>")
    inner = "".join(
        c if isinstance(c, Markup) else escape(printable(c), quote=False) for c in children
    )
    return Markup(f"<{tag}{given}>{inner}</{tag}>")
