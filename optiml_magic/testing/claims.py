"""What a reading claims beside addresses: digits, bounds, uniform conditions, rounds, places."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.subscripts import Subscript
from optiml_magic.testing.lanes import Lanes, Mask, Numbers
from optiml_magic.testing.walks import Walker

Claim = tuple[str, int, str]


def claims(walker: Walker) -> Iterator[Claim]:
    """Those that are not so: what, the line, and how it shows."""
    for access in walker.reading.accesses:
        lanes = walker.reaching(access)
        yield from _digits(walker, access, lanes)
        yield from _uniform(walker, access, lanes)
    yield from _places(walker)
    for name, bound, value in sorted(walker.numeric.breaches):
        symbol = walker.reading.symbols[name]
        yield "bound", 0, f"{name} has {bound} {getattr(symbol, bound)} and is {value}"
    for name, detail in walker.trips.items():
        axis = walker.reading.axis(name)
        yield "rounds", axis.line, f"{name}: {detail}"


def _digits(walker: Walker, access: Access, lanes: Lanes) -> Iterator[Claim]:
    subscript: Subscript | None = walker.reading.subscript(access)
    if subscript is None or access.index is None:
        return
    if subscript.linear != access.index:
        yield "digits", access.line, f"{subscript} is {subscript.linear}, not {access.index}"
    if not subscript.proved:
        return
    for digit, extent in zip(subscript.digits[1:], subscript.extents, strict=True):
        value, known = walker.numeric.form(digit, lanes)
        most, most_known = walker.numeric.form(extent, lanes)
        wrong = known & most_known & lanes.must & _outside(value, most)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            yield (
                "digit", access.line,
                f"{access.array}{subscript}: {digit} is {value[at]} of {extent} = {most[at]}",
            )  # fmt: skip


def _outside(value: Numbers, most: Numbers) -> Mask:
    found: Mask = ((value < 0) | (value >= most)).astype(bool)
    return found


def _uniform(walker: Walker, access: Access, lanes: Lanes) -> Iterator[Claim]:
    """Conditions that are said to be the same for a block, on those of its threads that ask."""
    reading = walker.reading
    for at, condition in enumerate(access.guard):
        if not reading.uniform(condition):
            continue
        loops = tuple(n for n in access.loops if len(reading.axis(n).guard) <= at)
        asked = walker.lanes(access.guard[:at], loops)
        holds, known = walker.numeric.truth(condition, asked)
        chosen = asked.must & known
        if not _same(walker, asked, loops, holds.astype(np.int64), chosen):
            yield "uniform", access.line, f"{condition} differs between threads of a block"
    form = access.index
    if form is not None and reading.uniform(form):
        value, known = walker.numeric.form(form, lanes)
        if not _same(walker, lanes, access.loops, value, known & lanes.must):
            yield "uniform", access.line, f"{form} differs between threads of a block"


def _same(
    walker: Walker, lanes: Lanes, loops: tuple[str, ...], values: Numbers, chosen: Mask
) -> bool:
    """Whether lanes of one block in the same rounds all have the same value."""
    blocks = len({*zip(*(walker.threads.names[f"blockIdx.{a}"].tolist() for a in "xyz"),
                       strict=True)})  # fmt: skip
    per_block = len(walker.threads) // max(blocks, 1)
    groups = [lanes.thread[chosen] // per_block]
    groups += [lanes.names[name][chosen] for name in loops if name in lanes.names]
    return not _differs(np.stack(groups, axis=1), values[chosen].astype(np.int64))


def _differs(groups: Numbers, values: Numbers) -> bool:
    """Whether rows that are equal have unequal values."""
    apart = len(np.unique(groups, axis=0)) if len(groups) else 0
    both = np.column_stack([groups, values])
    return len(both) > 0 and len(np.unique(both, axis=0)) != apart


def _places(walker: Walker) -> Iterator[Claim]:
    """A reduction's place in memory is the same in every round of its loops."""
    reading = walker.reading
    for reduction in reading.reductions:
        array = reduction.place.partition("[")[0]
        if array not in reading.arrays or "[" not in reduction.place:
            continue
        for access in reading.of(array):
            if access.index is None or not set(reduction.axes) <= set(access.loops):
                continue
            lanes = walker.reaching(access)
            value, known = walker.numeric.form(access.index, lanes)
            outer = [lanes.names[n] for n in access.loops if n not in reduction.axes]
            chosen = known & lanes.must
            groups = np.stack([lanes.thread, *outer], axis=1)[chosen]
            if _differs(groups, value[chosen].astype(np.int64)):
                yield "place", access.line, f"{reduction.place} moves in {reduction.axes}"
