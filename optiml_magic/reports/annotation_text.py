"""Annotated source as plain text: a row for each line of the kernel, figures before the code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from optiml_magic.printable import printable
from optiml_magic.reports import text
from optiml_magic.reports.annotation import AnnotatedLine, Annotation, LineCounts
from optiml_magic.reports.quantities import count, percent

_MACHINE = "machine code"


def head(annotation: Annotation) -> tuple[str, ...]:
    """The names of the columns before the source."""
    if not annotation.counted:
        return ("line", "PTX", "SASS")
    weighted = (_MACHINE,) if annotation.weighted else ()
    stalls = ("stalls",) if annotation.sampled else ()
    memory = ("sectors/request", "conflicts")
    return ("line", "share", "instructions", *weighted, "lanes", *memory, *stalls)


def cells(annotation: Annotation, line: AnnotatedLine) -> tuple[str, ...]:
    """What stands below ``head``; empty where there is nothing to say."""
    number, counts = str(line.number), line.counts
    if not annotation.counted:
        ptx = sum(1 for i in line.instructions if i.text)
        machine = sum(len(i.machine) for i in line.instructions)
        return (number, str(ptx), str(machine)) if line.instructions else (number, "", "")
    if counts is None:
        return (number, *[""] * (len(head(annotation)) - 1))
    weighted = (count(counts.machine or 0),) if annotation.weighted else ()
    return (
        number,
        percent(counts.share),
        count(counts.instructions),
        *weighted,
        f"{counts.lanes:.3g}",
        sectors(counts),
        conflicts(counts),
        *((stalls(counts),) if annotation.sampled else ()),
    )


def sectors(counts: LineCounts) -> str:
    """Sectors of each request to global or local memory, and the least where that is fewer."""
    if not counts.requests:
        return ""
    least = counts.ideal_sectors / counts.requests
    found = f"{counts.sectors / counts.requests:.3g}"
    return f"{found} of {least:.3g}" if counts.sectors > counts.ideal_sectors else found


def conflicts(counts: LineCounts) -> str:
    """Extra wavefronts of each request to shared memory."""
    if not counts.shared_requests:
        return ""
    return f"{counts.conflicts / counts.shared_requests:.3g}"


def stalls(counts: LineCounts) -> str:
    """The line's share of all samples of waiting warps, with its commonest reason."""
    return f"{percent(counts.stall_share)} {next(iter(counts.stalls))}" if counts.stalls else ""


def render(annotation: Annotation) -> str:
    """The whole text, its facts first."""
    return printable("\n".join(_lines(annotation)))


def _lines(annotation: Annotation) -> Iterator[str]:
    yield f"{annotation.name}, line by line"
    for name, fact in annotation.facts:
        first, *more = fact.split("\n")
        yield f"  {name:<8} {first}"
        yield from (f"  {'':<8} {line}" for line in more)
    yield ""
    names = head(annotation)
    rows = [cells(annotation, line) for line in annotation.lines]
    widths = [max(map(len, column)) for column in zip(names, *rows, strict=True)]
    yield _row(names, widths, "source")
    for line, row in zip(annotation.lines, rows, strict=True):
        yield _row(row, widths, line.source.replace("\t", "    "))
    found = [*(f for line in annotation.lines for f in line.findings), *annotation.findings]
    if found:
        yield ""
        yield "findings:"
        yield from (f"  {line}" for line in text.findings(found))


def _row(values: Sequence[str], widths: Sequence[int], source: str) -> str:
    figures = "  ".join(v.rjust(w) for v, w in zip(values, widths, strict=True))
    return f"{figures}  {source}".rstrip()
