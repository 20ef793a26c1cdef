"""The run's journal: one JSON line a fact, appended and flushed before the search sees it.

The first line says what run it is, of which command, how its programs are called, and how often
edits had paid off when it began; a ``known``
line what earlier runs found on kernels of its kind; an ``expansion`` line keeps what the proposers
said of a node, a ``made`` line the text that an idea became, a ``wave`` line the programs that a
model wrote for the search to begin from, a ``suggested`` line a program that somebody wrote by
hand, a ``taken`` line when the search took the next of these, an ``evaluated`` line what became of
a candidate, an ``ended`` line how the search ended and what its finalists came to. A run that is
resumed may have several of the last. To resume is to run the same search again with this memory:
what stands in the journal is not asked, made or evaluated a second time, so only what was in flight
at the end is repeated. Texts, digests and figures only; never pickles.
"""

from __future__ import annotations

from optiml_magic.journal.journal import Journal, in_use
from optiml_magic.journal.lines import (
    NOT_TOLD,
    SCHEMA,
    About,
    Asked,
    Ended,
    Line,
    Noted,
    RunHeader,
    left_by_hand,
    read_lines,
    said_of_left,
)

__all__ = [
    "NOT_TOLD",
    "SCHEMA",
    "About",
    "Asked",
    "Ended",
    "Journal",
    "Line",
    "Noted",
    "RunHeader",
    "in_use",
    "left_by_hand",
    "read_lines",
    "said_of_left",
]
