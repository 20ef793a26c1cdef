"""Matplotlib figures as SVG text: the same bytes each time, in the colours of the page around them.

The object API alone is used, so that no state of a user's own plots is read or changed. Lines and
text take the text colour of the page, as a light theme and a dark one both need.
"""

from __future__ import annotations

import hashlib
import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from optiml_magic.printable import printable
from optiml_magic.reports.markup import Markup

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"  # stands for the text colour of the page
BEFORE, AFTER, OTHER = "#e07b27", "#2f7fd0", "#8a8a8a"
_DRAWING = Lock()  # settings of matplotlib are global
_SETTINGS: dict[Any, Any] = {
    "svg.hashsalt": "optiml",
    "svg.fonttype": "none",
    "path.simplify": False,
    "font.family": ["DejaVu Sans"],  # comes with matplotlib
    "font.size": 10.0,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 11.0,
    "text.color": INK,
    "text.parse_math": False,  # a kernel's name may hold a dollar
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
_PLACES = re.compile(r' (d|x|y|width|height|transform)="([^"]*)"')
_DIGITS = re.compile(r"-?\d+\.\d+")
_FONT = "system-ui, DejaVu Sans, sans-serif"
# A file of its own has no page around it.
_ALONE = "<style>svg{color:#1f2328}@media(prefers-color-scheme:dark){svg{color:#e6edf3}}</style>"


@dataclass(frozen=True)
class Picture:
    """One picture; ``description`` says in words what is to be seen."""

    name: str
    description: str
    svg: Markup

    def save(self, path: str | Path) -> Path:
        """Write it as an SVG file that stands alone."""
        target = Path(path)
        head, tail = self.svg.split(">", 1)
        text = f'<?xml version="1.0" encoding="utf-8"?>\n{head}>{_ALONE}{tail}\n'
        target.write_text(text, encoding="utf-8")
        return target

    def __repr__(self) -> str:
        return f"{self.name}: {self.description}"

    def _repr_html_(self) -> str:
        return self.svg


@dataclass(frozen=True)
class NoPicture:
    """Why there is none, in a sentence."""

    name: str
    reason: str


def label(text: str, most: int = 60) -> str:
    """One line of at most that many characters, none of them hidden."""
    line = " ".join(printable(text).split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "\u2026"


@contextmanager
def drawing(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure of that many inches with one pair of axes; ``picture`` takes it inside the block."""
    import matplotlib as mpl
    from matplotlib import style
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with _DRAWING, warnings.catch_warnings(), style.context("default"), mpl.rc_context(_SETTINGS):
        # Only the room for a text is measured here; the reader's fonts have its letters.
        warnings.filterwarnings("ignore", "Glyph .* missing from", UserWarning)
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(figure)
        yield figure, figure.add_subplot()


def settle(figure: Figure) -> None:
    """Give the axes their place for good: measuring all texts takes longer than drawing them."""
    engine = figure.get_layout_engine()
    if engine is not None:
        engine.execute(figure)
    figure.set_layout_engine("none")


def picture(figure: Figure, name: str, description: str) -> Picture:
    """The figure as an element for a page."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    settle(figure)
    out = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    canvas: Any = FigureCanvasSVG(figure)  # its methods have no types
    canvas.print_svg(out, metadata=nothing)  # savefig would draw it twice
    return Picture(name, description, _element(out.getvalue(), name, description))


def _element(text: str, name: str, description: str) -> Markup:
    """Without what belongs to a file, or would reach beyond the picture on a page."""
    body = text[text.index(">", text.index("<svg")) + 1 :]
    view = re.search(r'viewBox="([^"]*)"', text)
    assert view is not None
    for unwanted in (r"<metadata>.*?</metadata>\s*", r"<style.*?</style>\s*", r"<!--.*?-->\s*"):
        body = re.sub(unwanted, "", body, flags=re.DOTALL)
    body = _own_names(body).replace(INK, "currentColor").replace("'DejaVu Sans'", _FONT)
    body = _PLACES.sub(lambda m: f' {m[1]}="{_DIGITS.sub(_rounded, m[2])}"', body)
    body = re.sub(r"\n\s*", "\n", body).replace("<defs/>\n", "")
    _, _, width, height = view[1].split()
    about = escape(printable(description), quote=False)
    return Markup(
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{view[1]}" width="{width}" height="{height}" role="img" '
        'style="max-width:100%;height:auto;stroke-linejoin:round">'
        f"<title>{escape(name)}</title><desc>{about}</desc>{body.strip()}"
    )


def _rounded(number: re.Match[str]) -> str:
    """To a hundredth of a point, which nobody sees."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")


def _own_names(body: str) -> str:
    """Names that are referred to become this picture's own; the others go."""
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', body))
    mark = hashlib.sha256(body.encode()).hexdigest()[:8]

    def renamed(match: re.Match[str]) -> str:
        return f' id="{mark}-{match[1]}"' if match[1] in used else ""

    body = re.sub(r' id="([^"]*)"', renamed, body)
    return re.sub(r'(url\(#|href="#)', rf"\g<1>{mark}-", body)
