"""Every picture of a run."""

from __future__ import annotations

from optiml_magic.reports.bars import bars
from optiml_magic.reports.branches import branches
from optiml_magic.reports.figure import NoPicture, Picture
from optiml_magic.reports.progress import progress
from optiml_magic.reports.roofline import roofline
from optiml_magic.reports.summary import Summary


def pictures(summary: Summary) -> tuple[Picture | NoPicture, ...]:
    """The roofline, where the time goes, the search, its tree; or why one of them is missing."""
    return roofline(summary), bars(summary), progress(summary), branches(summary)
