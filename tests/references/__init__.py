"""References in NumPy as people write them, by family: each is to become a verified kernel."""

from __future__ import annotations

from tests.references import grids, idioms, lists, neural, operators, tables
from tests.references.entry import Entry

REFERENCES: tuple[Entry, ...] = (
    *tables.REFERENCES, *neural.REFERENCES, *grids.REFERENCES, *lists.REFERENCES,
    *idioms.REFERENCES, *operators.REFERENCES,
)  # fmt: skip
