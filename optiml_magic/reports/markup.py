"""HTML built from elements, so that text can only ever arrive escaped."""

from __future__ import annotations

from html import escape

from optiml_magic.printable import printable

VOID = frozenset({"meta", "br"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


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
