"""What is to be marked on lines of the cell, as data beside an output's text and HTML.

A front end that knows the type draws the marks; others show the text that is there anyway.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal

from optiml_magic.model.evaluation import Evaluation
from optiml_magic.model.finding import Finding
from optiml_magic.model.verdict import Verdict
from optiml_magic.printable import printable

MIME = "application/vnd.optiml.marks+json"
SCHEMA = 1

Severity = Literal["error", "warning", "note"]
_LONGEST = 120  # letters of a line, as an error quotes it


Mark = tuple[int, Severity, str]


def evaluated(text: str, evaluation: Evaluation) -> dict[str, Any]:
    """The entry of a mimebundle for a text and what became of it; none where nothing is marked."""
    return _bundle(
        text.splitlines(), [*_verdict(evaluation.verdict), *_advice(evaluation.findings)]
    )


def advised(lines: Sequence[str], findings: Iterable[Finding]) -> dict[str, Any]:
    """The same for the findings on the lines of a text."""
    return _bundle(lines, _advice(findings))


def _bundle(lines: Sequence[str], marks: Iterable[Mark]) -> dict[str, Any]:
    """``source`` is the line as it was, so that a mark is not shown on another one."""
    shown = [
        {
            "line": line,
            "severity": severity,
            "text": printable(said),
            "source": lines[line - 1].strip()[:_LONGEST],
        }
        for line, severity, said in marks
        if 0 < line <= len(lines)
    ]
    return {MIME: {"schema": SCHEMA, "marks": shown}} if shown else {}


def _verdict(verdict: Verdict) -> Iterator[Mark]:
    if not verdict.passed:
        outcome = str(verdict.outcome).replace("_", " ")
        fix = f"\nfix: {verdict.fix}" if verdict.fix else ""
        yield verdict.line, "error", f"{outcome}: {verdict.summary}{fix}"
    for hazard in verdict.hazards:
        kind = hazard.kind.replace("_", " ")
        for line in hazard.lines:
            yield line, hazard.severity, f"{kind}: {hazard.message}\nfix: {hazard.fix}"


def _advice(findings: Iterable[Finding]) -> Iterator[Mark]:
    for finding in findings:
        advice = f"\n{finding.actions[0].told}" if finding.actions else ""
        kind = finding.tool.replace("_", " ")
        severity: Severity = "note" if finding.severity == "note" else "warning"
        yield finding.line, severity, f"{kind}: {finding.cause}{advice}"
