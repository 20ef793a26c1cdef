"""All tasks of the suite, and the choice of some."""

from __future__ import annotations

from collections.abc import Collection

from optiml_magic.bench.entry import Entry, Part
from optiml_magic.bench.families import (
    chains,
    convolutions,
    gathers,
    histograms,
    images,
    layouts,
    losses,
    maps,
    networks,
    normalisations,
    pairs,
    products,
    reductions,
    small,
    stencils,
    vectors,
)
from optiml_magic.errors import UsageError, nearest

SUITE: tuple[Entry, ...] = (
    *maps.TASKS,
    *layouts.TASKS,
    *images.TASKS,
    *reductions.TASKS,
    *normalisations.TASKS,
    *losses.TASKS,
    *products.TASKS,
    *vectors.TASKS,
    *stencils.TASKS,
    *convolutions.TASKS,
    *histograms.TASKS,
    *gathers.TASKS,
    *pairs.TASKS,
    *small.TASKS,
    *chains.TASKS,
    *networks.TASKS,
)


def chosen(names: Collection[str], part: Part | None) -> tuple[Entry, ...]:
    """The tasks of these names or families, all where none is named; of one part, or of both.

    Raises UsageError for a name that is neither, and where nothing is left.
    """
    known = {entry.name for entry in SUITE} | {entry.family for entry in SUITE}
    for name in names:
        if name not in known:
            fix = nearest(name, known) or f"families: {', '.join(_families())}"
            raise UsageError(f"no task or family of the suite is named {name!r}", fix=fix)
    found = tuple(
        entry
        for entry in SUITE
        if (not names or entry.name in names or entry.family in names)
        and part in (None, entry.part)
    )
    if not found:
        raise UsageError(f"none of these tasks is {part}", fix="leave out --part")
    return found


def _families() -> list[str]:
    return list(dict.fromkeys(entry.family for entry in SUITE))
