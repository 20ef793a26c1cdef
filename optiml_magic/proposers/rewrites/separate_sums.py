"""Windows whose weights are those of a row times those of a column: rows first, then columns."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.beforehand import beforehand, works
from optiml_magic.kernels.primitives.clamped import clamped
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.enclosed import enclosed
from optiml_magic.kernels.primitives.factored import factored
from optiml_magic.kernels.primitives.floored import floored
from optiml_magic.kernels.primitives.hoisted import hoisted
from optiml_magic.kernels.primitives.in_ints import in_ints
from optiml_magic.kernels.primitives.named_rows import named_rows
from optiml_magic.kernels.primitives.opened import opened
from optiml_magic.kernels.primitives.pinned import pins
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.kernels.primitives.sizes import most_rounds
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.primitives.works import Common, Finder
from optiml_magic.kernels.tree import Variable
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.compute_once import items_of
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_LEAST = 3  # threads that come to a row, and rounds of its sum, from which on it pays: ours
_LARGEST = 2**28  # sums that are kept, a gigabyte of floats: ours
_MANY = 4  # of both, from which on it is likely: ours
_ARITHMETIC = ("the order of additions", "the rounding of products")


@dataclass(frozen=True)
class _Work:
    """A sum along a row that a launch before finds, by its pin and its number."""

    pin: int
    at: int
    alike: float
    rounds: float


class SeparateSums(KernelRule):
    """A Gaussian blur with two loops a pixel; an image enlarged by weights of rows and columns."""

    name = "separate_sums"
    before = (
        in_ints, *PLAIN, planar, in_full, direct, opened, unravelled, unravelled_planes,
        floored, clamped, enclosed, hoisted, named_rows,
    )  # fmt: skip
    teaches = (
        "Each output summed up a window of rows by columns, with weights that are a product of one "
        "for the row and one for the column. The weight of a row may multiply the sum along it "
        "once, and that sum is the same for all outputs whose windows have this row at this "
        "column. A launch before finds the sums along rows, the kernel adds up those of its rows: "
        "of a window of r by r elements an output takes 2 r in the place of r times r. An "
        "exponential of a sum of squares, as a Gaussian has it, is such a product."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        made = _ready(kernel)
        if isinstance(made, Refused):
            return
        work = _best(made.settled())
        if work is None:
            return
        found = _apply(kernel)
        if isinstance(found, Refused):
            yield found
            return
        fewer = min(work.alike, work.rounds)
        yield Site(
            "rows", "sum up windows along rows in a launch before, then along columns",
            partial(_apply, kernel), 0.9 if fewer >= _MANY else 0.75,
            Hypothesis(TIME, "lower", "a row is summed up once for all windows that have it",
                       (1.2, max(1.5, fewer))),
            arithmetic=_ARITHMETIC,
        )  # fmt: skip


def _ready(kernel: Kernel) -> Kernel | Refused:
    """With sums of rows by themselves, in loops that count from 0."""
    made = factored(kernel, plain=True)
    if isinstance(made, Refused):
        return made
    for at in range(len(loops_in(made.function.body))):
        made = where_legal(as_counted, made, at, is_simple)
    return made


def _best(kernel: Kernel) -> _Work | None:
    """The sum that the most threads find alike."""
    found = list[_Work]()
    for number in range(len(pins(kernel))):
        try:
            finder, some = works(kernel, number)
        except NotLegal:
            continue
        for at, work in enumerate(some):
            alike, rounds = _alike(kernel, finder, work), _rounds(kernel, work)
            if rounds >= _LEAST and alike >= _LEAST:
                found.append(_Work(number, at, alike, rounds))
    return max(found, key=lambda work: work.alike, default=None)


def _alike(kernel: Kernel, finder: Finder, work: Common) -> float:
    """How many threads and rounds come to each sum, where its results have room."""
    kept = [items_of(kernel, finder, one) for one in work.kept]
    dropped = [items_of(kernel, finder, one) for one in work.dropped]
    if None in kept or None in dropped:
        return 0.0 if kernel.facts is not None else math.inf
    if math.prod(n or 0 for n in kept) * len(work.results) > _LARGEST:
        return 0.0
    pinned = [n for n, one in zip(kept, work.kept, strict=True) if isinstance(one, Variable)]
    return math.prod(n or 0 for n in dropped) / max(1, math.prod(n or 0 for n in pinned))


def _rounds(kernel: Kernel, work: Common) -> float:
    axes = kernel.axes()
    loops = [loop for statement in work.statements for loop in loops_in(statement)]
    known = [most_rounds(kernel, axes[loop]) for loop in loops if loop in axes]
    return max((n if n is not None else math.inf for n in known), default=0)


def _apply(kernel: Kernel) -> Kernel | Refused:
    made = _ready(kernel)
    if isinstance(made, Refused):
        return made
    work = _best(made.settled())
    if work is None:
        return Refused("no sum of its own is the same for several threads")
    return beforehand(made, work.at, work.pin)
