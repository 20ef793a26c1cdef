"""Blocks and items that threads with several items each begin with."""

from __future__ import annotations

from collections.abc import Mapping

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.grids import needed_form
from optiml_magic.kernels.primitives.jammed import (
    THREADS,
    Several,
    blocks_name,
    extent_names,
    item_names,
    least,
    most_threads,
)
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.model.space import Point

BLOCKS: Mapping[str, tuple[int, ...]] = {
    "x": (16, 32, 64, 128, 256), "y": (1, 2, 4, 8, 16, 32), "z": (1, 2, 4, 8),
}  # fmt: skip
_WARP = 32
_RESIDENT = 1024  # threads whose registers a multiprocessor has, 64 each
_FAR, _TALL = 8, 16  # rows between what a thread loads, from which on blocks are so tall: ours


def _across(kernel: Kernel, several: Several) -> int | None:
    """The threads that a row has work for, as a power of two; None where that is not known."""
    count = needed_form(kernel, "x")
    known = value(kernel, count) if count is not None else None
    items = several.counts["x"][0] if "x" in several.counts else 1
    return 1 << max(0, (known - 1) // items).bit_length() if known is not None else None


def _even(extent: int, most: int) -> int:
    """The power of two that is no less, where it is no more than most: blocks have such extents."""
    even = 1 << (extent - 1).bit_length()
    return even if even <= most else extent


def _rows_apart(kernel: Kernel) -> int:
    """How many rows lie between what a thread loads of one array at most."""
    reading = kernel.reading
    rows: dict[tuple[str, Polynomial], set[int]] = {}
    for access in (a for a in reading.accesses if a.space == "global" and a.mode == "load"):
        by = access.index.coefficient("threadIdx.y") if access.index is not None else None
        if access.index is None or by is None or len(by.terms) != 1:
            continue
        forms = {access.index}
        for axis in reading.loops(access):
            last = Polynomial.constant((axis.trips or 1) - 1)
            steps = [(f.without([axis.name]), f.coefficient(axis.name)) for f in forms]
            forms = {rest + step * n for rest, step in steps if step is not None
                     for n in (Polynomial(), last)}  # fmt: skip
        ((size, factor),) = by.terms
        for form in forms:
            row = dict(form.terms).get(size, 0) // factor
            place = form - by * Polynomial.constant(row)
            rows.setdefault((access.array, place), set()).add(row)
    return max((max(own) - min(own) for own in rows.values()), default=0)


def points_of(kernel: Kernel, several: Several, *, deep: bool, crowded: bool) -> tuple[Point, ...]:
    """Wide blocks of about 256 threads, with more and with fewer items each.

    Where most of the work is in a loop around all items, more of them are worth their registers;
    elsewhere more threads are, which hide what loads take, if their windows are not ``crowded``.
    """
    names, extents = item_names(kernel, several.counts), extent_names(kernel)
    blocks = blocks_name(kernel)
    tall = {axis: _even(least(kernel, several, axis), max(BLOCKS[axis])) for axis in "yz"}
    found: list[Point] = []
    most = most_threads(kernel, several)
    wide = _across(kernel, several)
    first = max(several.counts)  # y or z before x, which is in vectors already
    # Three blocks are ours; a few stencils and filters that were timed on an H200 liked them best.
    numbers: tuple[tuple[int, int, int, int], ...] = (
        (0, 0, 4, 3),
        (1, 0, 4, 2),
        (0, 0, 4, 1),
        (2, 0, 4, 1),
    )
    if len(names) == 1:
        few, many = (0, 0, 4, 1), (0, 0, 4, 4)
        numbers = (*((few, many) if deep else (many, few)), (1, 0, 4, 1))
    elif deep:
        numbers = ((1, 1, 4, 1), (1, 0, 4, 1), (0, 0, 4, 1))
    elif crowded:
        numbers = ((0, 0, 4, 1), (0, 0, 4, 3), (1, 0, 4, 1), (2, 0, 4, 1))
    width = _WARP
    if "y" in extents and "x" in names and "y" not in names and _rows_apart(kernel) >= _FAR:
        width = _WARP // 2  # of vectors these are lines of the cache still
        numbers = tuple((at, beside, _TALL, resident) for at, beside, _, resident in numbers)
    for at, beside, rows, resident in numbers:
        fit = most // (width * tall["z"])
        own = tall | {"y": max(min(rows, fit) if "y" in extents else 1, tall["y"])}
        own["x"] = min(max(_WARP, THREADS // (own["y"] * own["z"])), most // (own["y"] * own["z"]))
        if wide is not None:  # no thread beyond the end of a short row
            narrow = BLOCKS["x"][0] if "y" in extents else _WARP
            own["x"] = min(own["x"], max(narrow, wide))
        if wide is not None and "y" in extents:
            own["y"] = max(own["y"], THREADS // (own["x"] * own["z"]))
        own["x"] = 1 << own["x"].bit_length() - 1  # rows may be no power of two
        items = {}
        for axis, name in names.items():
            counts = several.counts[axis]
            place = at if axis == first else beside if axis != "x" else 0
            items[name] = counts[min(place, len(counts) - 1)]
        size = own["x"] * own["y"] * own["z"]
        more = {blocks: min(resident, max(1, _RESIDENT // size))} if blocks else {}
        found.append(items | {name: own[axis] for axis, name in extents.items()} | more)
    return tuple(dict(point) for point in dict.fromkeys(tuple(p.items()) for p in found))
