"""Matplotlib figures as SVG files: the same bytes each time, on a ground of their own.

A page holds them as `<img>` with a data URI: notebooks that nobody trusts lose every `<svg>`. An
image cannot take the text colour of the page around it; it follows the colour scheme of the page
where a browser hands that on, as in JupyterLab, and its ground keeps it legible everywhere else.
The object API alone is used, so that no state of a user's own plots is read or changed.
"""

from __future__ import annotations

import io
import re
import warnings
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

from optiml_magic.printable import printable
from optiml_magic.reports.markup import Markup, element

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#010203"  # stands for the text colour of the page
WIDTH, HEIGHT = 7.4, 4.6  # inches, of all pictures of a run, which stand side by side
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
    "figure.constrained_layout.h_pad": 0.12,
    "figure.constrained_layout.w_pad": 0.12,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
}
_PLACES = re.compile(r' (d|x|y|width|height|transform)="([^"]*)"')
_DIGITS = re.compile(r"-?\d+\.\d+")
_FONT = "system-ui, DejaVu Sans, sans-serif"
_THEMES = (
    "<style>svg{color:#1f2328}.ground{fill:#fff}@media(prefers-color-scheme:dark){"
    "svg{color:#e6edf3}.ground{fill:#16191f}}</style>"
)
_PIXELS = 1.25  # of a page for a point of the drawing
_EDGE = 'x=".5" y=".5" rx="6" stroke="#808080" stroke-opacity=".3"'


@dataclass(frozen=True)
class Picture:
    """One picture, an SVG file as text; ``description`` says in words what is to be seen."""

    name: str
    description: str
    svg: str

    def save(self, path: str | Path) -> Path:
        """Write it as an SVG file."""
        target = Path(path)
        text = f'<?xml version="1.0" encoding="utf-8"?>\n{self.svg}\n'
        target.write_text(text, encoding="utf-8")
        return target

    @property
    def image(self) -> Markup:
        """An element for a page, as wide as there is room, at most as wide as it was drawn."""
        data = b64encode(self.svg.encode()).decode()
        return element(
            "img",
            alt=self.description,
            src=f"data:image/svg+xml;base64,{data}",
            style="max-width:100%;height:auto",
        )

    def __repr__(self) -> str:
        return f"{self.name}: {self.description}"

    def _repr_html_(self) -> str:
        return self.image


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
    """The figure as a file."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG

    settle(figure)
    out = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    canvas: Any = FigureCanvasSVG(figure)  # its methods have no types
    canvas.print_svg(out, metadata=nothing)  # savefig would draw it twice
    return Picture(name, description, _file(out.getvalue(), name, description))


def _file(text: str, name: str, description: str) -> str:
    """Without what takes bytes and shows nothing, with a ground and a title."""
    body = text[text.index(">", text.index("<svg")) + 1 :]
    view = re.search(r'viewBox="([^"]*)"', text)
    assert view is not None
    for unwanted in (r"<metadata>.*?</metadata>\s*", r"<style.*?</style>\s*", r"<!--.*?-->\s*"):
        body = re.sub(unwanted, "", body, flags=re.DOTALL)
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', body))
    body = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used else "", body)
    body = body.replace(INK, "currentColor").replace("'DejaVu Sans'", _FONT)
    body = _PLACES.sub(lambda m: f' {m[1]}="{_DIGITS.sub(_rounded, m[2])}"', body)
    body = re.sub(r"\n\s*", "\n", body).replace("<defs/>\n", "")
    _, _, width, height = (float(n) for n in view[1].split())
    ground = f'<rect class="ground" width="{width - 1:g}" height="{height - 1:g}" {_EDGE}/>'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="{view[1]}" width="{width * _PIXELS:g}" height="{height * _PIXELS:g}" '
        f'role="img" stroke-linejoin="round"><title>{escape(name)}</title>'
        f"<desc>{escape(printable(description), quote=False)}</desc>{_THEMES}{ground}{body.strip()}"
    )


def _rounded(number: re.Match[str]) -> str:
    """To a hundredth of a point, which nobody sees."""
    return f"{float(number[0]):.2f}".rstrip("0").rstrip(".")
