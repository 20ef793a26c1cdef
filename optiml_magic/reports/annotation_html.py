"""Annotated source as static HTML: a row for each line, its PTX and machine code folded below it.

No script, no handler, no style block, nothing to load: a notebook's sanitiser, nbconvert and a
strict content security policy leave it whole, and where styles are taken away a table stays. The
source stands before all figures but its share, so that a narrow page shows it; the others scroll.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from optiml_magic.model.finding import Finding
from optiml_magic.reports.annotation import AnnotatedLine, Annotation, Instruction, LineCounts
from optiml_magic.reports.annotation_text import cells, head
from optiml_magic.reports.blocks import MONO, SEVERITY, facts, quiet, section
from optiml_magic.reports.markup import Markup, document, element
from optiml_magic.reports.quantities import percent

_TABLE = f"border-collapse:collapse;margin:8px 0;{MONO}"
_HEAD = "padding:2px 8px;text-align:right;vertical-align:bottom;font-weight:600"
_FIGURE = "padding:0 8px;text-align:right;vertical-align:top;white-space:nowrap"
_SOURCE = "padding:0 8px;text-align:left;vertical-align:top"
_WIDTH = "min-width:32em"  # of the source, where a page is narrow
_CODE = "white-space:pre;padding:0 4px"
_FOLDED = "cursor:pointer;display:list-item;list-style-position:outside;margin-left:1.4em"
_PLAIN = "margin-left:1.4em"
_ASIDE = "margin:2px 0 0 1.4em;max-width:60em;white-space:normal"
_ASSEMBLY = (
    f"{MONO};margin:2px 0 6px 0;padding:4px 8px 4px 1.4em;white-space:pre;overflow-x:auto;"
    # What opens takes the width of the source, and scrolls.
    "width:0;min-width:100%;box-sizing:border-box;background-color:transparent;"
    "border-left:2px solid rgba(128,128,128,0.5)"
)
# Tints that let the text of a light theme or a dark one through.
_INSTRUCTIONS, _SECTORS, _CONFLICTS = "255,120,0", "0,120,255", "230,30,90"
_BEFORE = 2  # columns that stand before the source: its number and its share
_TOP = ("time", "check", "limit", "counts")  # facts that are told above the table
_PARAGRAPH = "margin:4px 0;font-size:13px"
_STRONGEST = 0.6  # opacity of a line that has it all
_WIDEST = 64  # characters of PTX, beyond which machine code is no longer aligned


def page(annotations: list[Annotation], title: str) -> str:
    """A whole page for a file."""
    return document(title, *(fragment(a) for a in annotations), width="1400px")


def fragment(annotation: Annotation) -> Markup:
    """One annotated kernel, to be set into a notebook or a page."""
    names = head(annotation)
    styles = [*[_HEAD] * _BEFORE, _HEAD.replace("right", "left"), *[_HEAD] * len(names)]
    titles = [*names[:_BEFORE], "source", *names[_BEFORE:]]
    header = element(
        "tr",
        *(
            element("th", title.replace("/", " /\u00a0"), scope="col", style=style)
            for title, style in zip(titles, styles, strict=False)
        ),
    )
    rows = [_row(annotation, line) for line in annotation.lines]
    table = element("table", element("thead", header), element("tbody", *rows), style=_TABLE)
    found = [_advice(finding) for finding in annotation.findings]
    whole = element("ul", *(element("li", advice) for advice in found))
    return element(
        "div",
        element("h3", f"{annotation.name}, line by line"),
        *_legend(annotation),
        *([whole] * bool(found)),
        element("div", table, style="overflow-x:auto"),
        section("Details", facts(annotation.facts), is_open=False),
    )


def _legend(annotation: Annotation) -> Iterator[Markup]:
    """What was measured in a line, then what the colours and figures say."""
    known = dict(annotation.facts)
    told = [known[name] for name in _TOP if name in known]
    yield element("p", "; ".join(told) + ".", style=_PARAGRAPH)
    opened = "a line opens to its PTX and the machine code (SASS) that ptxas made of it"
    if not annotation.counted:
        yield quiet(f"How many instructions of each a line became; {opened}.", "p")
        return
    waiting = "; stalls: share of all samples of waiting warps" if annotation.sampled else ""
    yield element(
        "p",
        *_swatch(_INSTRUCTIONS, "share of all executed instructions"),
        *_swatch(_SECTORS, "share of all sectors (32 bytes) of global and local memory"),
        *_swatch(_CONFLICTS, "share of all bank conflicts of shared memory"),
        style=_PARAGRAPH,
    )
    yield quiet(
        "Instructions are counted by warps; lanes are the active ones of 32; sectors a request, "
        "\u201c18 of 4\u201d where 4 would do; conflicts are extra turns a request"
        f"{waiting}; {opened}.",
        "p",
    )


def _swatch(color: str, text: str) -> tuple[str, ...]:
    box = f"background-color:rgba({color},{_STRONGEST});padding:0 6px;margin-right:6px"
    return element("span", "\u00a0", style=box), f"{text} \u00a0 "


def _row(annotation: Annotation, line: AnnotatedLine) -> Markup:
    names = head(annotation)
    figures = [
        element("td", value, style=_FIGURE + _heat(line, name))
        for name, value in zip(names, cells(annotation, line), strict=True)
    ]
    source = element("div", _source(annotation, line), style=_WIDTH)
    row = [*figures[:_BEFORE], element("td", source, style=_SOURCE), *figures[_BEFORE:]]
    return element("tr", *row)


def _heat(line: AnnotatedLine, column: str) -> str:
    """The background of a figure: its own share of the whole, as opacity."""
    if line.counts is None:
        return ""
    if column in ("share", "instructions"):
        return _tint(_INSTRUCTIONS, line.counts.share)
    if column == "sectors/request":
        return _tint(_SECTORS, line.counts.sector_share)
    if column == "conflicts":
        return _tint(_CONFLICTS, line.counts.conflict_share)
    return ""


def _tint(color: str, share: float) -> str:
    """The root of the share, so that a tenth can still be seen."""
    opacity = _STRONGEST * share**0.5
    seen = f"rgba({color},{opacity:.2f})" if opacity >= 0.01 else "transparent"
    return f";background-color:{seen}"


def _source(annotation: Annotation, line: AnnotatedLine) -> Markup:
    counts = line.counts
    by_sectors = counts is not None and counts.sector_share > counts.share
    tint = _tint(_SECTORS if by_sectors else _INSTRUCTIONS, line.heat)
    # Where the style is taken away a space that does not break still indents.
    text = line.source.replace("\t", "    ")
    indent = len(text) - len(text.lstrip(" "))
    code = element("code", "\u00a0" * indent + text[indent:], style=_CODE + tint)
    if not line.instructions:
        return element("div", code, style=_PLAIN)
    marks = (element("span", _name(f), style=_mark(f)) for f in line.findings)
    parts = [element("summary", code, *marks, style=_FOLDED)]
    parts += [element("div", _advice(f), style=_ASIDE) for f in line.findings]
    told = list(_told(counts)) if counts else []
    if told:
        parts.append(element("div", "; ".join(told), style=_ASIDE))
    parts.append(element("pre", _assembly(annotation, line), style=_ASSEMBLY))
    return element("details", *parts)


def _name(finding: Finding) -> str:
    """Behind the code of a line; the arrow keeps it from being read as code."""
    return f"  \u25c0 {finding.tool.replace('_', ' ')}"


def _mark(finding: Finding) -> str:
    return f"color:{SEVERITY[finding.severity]};white-space:pre"


def _advice(finding: Finding) -> Markup:
    """What is wrong and what to try first."""
    severity = element("span", finding.severity, style=_mark(finding))
    tries = f" Try: {finding.actions[0].told}" if finding.actions else ""
    return element("span", severity, f" {finding.cause}{tries}")


def _told(counts: LineCounts) -> Iterator[str]:
    yield from counts.accesses
    if counts.sectors:
        yield f"{percent(counts.sector_share)} of all sectors"
    if counts.stalls:
        reasons = ", ".join(f"{number} {reason}" for reason, number in counts.stalls.items())
        yield f"samples of waiting warps: {reasons}"


def _assembly(annotation: Annotation, line: AnnotatedLine) -> str:
    """PTX to the left, the machine code of each instruction to its right."""
    several = len({i.kernel for i in line.instructions}) > 1
    counted = any(i.executed is not None for i in line.instructions)
    width = min(_WIDEST, max(len(i.text) for i in line.instructions))
    lead = f"{'warps':>9}  " if counted else ""
    rows = [f"{lead}{'PTX':<{width}}  SASS"]
    for kernel, group in groupby(line.instructions, key=lambda i: i.kernel):
        if several:
            rows += ["", f"{annotation.kernels.get(kernel, kernel)}:"]
        for instruction in group:
            rows += _pair(instruction, width, counted=counted)
    return "\n".join(rows)


def _pair(instruction: Instruction, width: int, *, counted: bool) -> list[str]:
    runs = "" if instruction.executed is None else str(instruction.executed)
    lead = f"{runs:>9}  " if counted else ""
    first, *more = instruction.machine or ("",)
    rows = [f"{lead}{instruction.text:<{width}}  {first}".rstrip()]
    blank = " " * (len(lead) + width + 2)
    return [*rows, *(f"{blank}{text}" for text in more)]
