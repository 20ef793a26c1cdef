"""Where a program comes from, in a few lines that can stand at the head of a file."""

from __future__ import annotations

from optiml_magic.reports.quantities import seconds
from optiml_magic.reports.summary import Summary
from optiml_magic.reports.text import headline


def provenance(summary: Summary) -> tuple[str, ...]:
    """The claim with its source and chip, the edits, the check; nothing of the user's machine."""
    before = summary.root.evaluation.measurement
    after = summary.winner.evaluation.measurement
    verdict = summary.winner.evaluation.verdict
    lines = [f"{headline(summary)}."]
    if before and after:
        lines.append(
            f"{seconds(after.seconds)} {after.source} on {after.chip}; "
            f"{summary.baseline} {seconds(before.seconds)}."
        )
    if summary.winner is not summary.root:
        lines.append(f"Edits: {summary.recipe}.")
    lines.append(f"Checked against {summary.oracle}: {verdict.outcome}, {verdict.summary}.")
    if summary.launch == "inferred":
        lines.append("The launch was inferred from the code.")
    return tuple(lines)
