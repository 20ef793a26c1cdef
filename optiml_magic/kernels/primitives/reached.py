"""Which elements of a window items certainly load or store: those of the rounds that come to it.

``if (dx != 0 || dy != 0)`` leaves a round out. What lies between two elements of a row that are
certainly loaded can be loaded as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import permutations, product

from optiml_magic.errors import SourceError
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.extents import existing
from optiml_magic.kernels.primitives.indices import COUNTER, ITEM, Undecided, factor
from optiml_magic.kernels.primitives.interior import Interior
from optiml_magic.kernels.primitives.items import Items
from optiml_magic.kernels.primitives.pinned import room
from optiml_magic.kernels.primitives.windows import Round, Taken, Window
from optiml_magic.kernels.spelling import Speller, Unspelled
from optiml_magic.kernels.symbols import Always, Compare, Condition, Every, Some

_ZERO, _ONE = Polynomial(), Polynomial.constant(1)
Row = tuple[tuple[tuple[str, ...], int], ...]


def places(group: Window, mode: str, sure: Collection[Expr]) -> set[tuple[Row, int]]:
    """The rows of what the first item certainly loads or stores, and where it is in these."""
    mine = (one for one in group.taken if one.does(mode) and one.access.own in sure)
    return {place for one in mine for place in _places(group, one, every_round=False)}


def lies_between(group: Window, one: Taken, certain: Collection[tuple[Row, int]]) -> bool:
    """Whether all that something may load is in a row between two that are loaded for certain."""
    rows: dict[Row, list[int]] = {}
    for row, at in certain:
        rows.setdefault(row, []).append(at)
    return all(
        row in rows and min(rows[row]) <= at <= max(rows[row])
        for row, at in _places(group, one, every_round=True)
    )


def exists(
    kernel: Kernel, one: Taken, group: Window, others: Iterable[Window], sure: Collection[Expr]
) -> str | None:
    """The condition under which an array has all that something may load, as a launch says it.

    Another array is as large as this one, or less, and is asked for the same elements for certain.
    """
    here = (group.outer, group.apart, one.at.base)
    index = one.access.index or _ZERO
    for other in others:
        known = [t for t in other.taken if (other.outer, other.apart, t.at.base) == here]
        own = {place for t in known if t.access.own in sure
               for place in _places(other, t, every_round=False)}  # fmt: skip
        if own and lies_between(group, one, own):
            asked = existing(
                kernel, Items(group.array.array, index, one.accesses), None,
                [Items(other.array.array, index, known[0].accesses)],
            )  # fmt: skip
            if asked is not None:
                return asked
    return None


def within(
    kernel: Kernel, one: Taken, interior: Interior, bounds: Iterable[Polynomial]
) -> str | None:
    """The same where an array has an element for each index, and items ask for some of these.

    There are as many indices as ``bounds`` say, along each axis or along all of them.
    """
    index, whole = one.access.index, _ONE
    for bound in bounds:
        whole = whole * bound
    try:
        asked = room(kernel, one.access, Speller(kernel.reading.symbols, {}).form(whole))
        if index is None or asked is None:
            return None
        with interior.attempt():
            interior.need(index)
            interior.need(whole - _ONE - index)
    except (Undecided, Unspelled, SourceError):
        return None
    return str(asked.condition)


def on_plane(
    kernel: Kernel, one: Taken, interior: Interior, bounds: Sequence[Polynomial]
) -> str | None:
    """The same where items ask for places in a plane, such as a disc around each of its points.

    It has as many rows and columns as ``bounds`` say, and all rows are as long as it is wide.
    """
    for high, wide in permutations(bounds, 2) if len(bounds) == 2 else ():
        width = next(iter(wide.symbols), "")
        strides, row = {s for s in one.at.steps if s}, one.at.base.coefficient(width)
        if wide != Polynomial.symbol(width) or strides != {(width,)} or row is None:
            continue
        column = one.at.base.without([width]) + one.at.steps.get((), _ZERO)
        places = (row + one.at.steps[width,], high), (column, wide)
        try:
            asked = room(kernel, one.access, Speller(kernel.reading.symbols, {}).form(high * wide))
            if asked is None:
                return None
            with interior.attempt():
                rounds = (*one.rounds, *_around(kernel, one, interior))
                for place, bound in places:
                    least, most = _ends(_first(place, interior), rounds)
                    interior.need(least)
                    interior.need(bound - _ONE - most)
        except (Undecided, Unspelled, SourceError):
            continue
        return str(asked.condition)
    return None


def _around(kernel: Kernel, one: Taken, interior: Interior) -> Iterator[Round]:
    """The rounds of the loops around that stay loops."""
    own = {turn.counter for turn in one.rounds}
    for axis in kernel.reading.loops(one.access):
        if axis.name in own:
            continue
        start = interior.placed(axis.start).value if axis.start is not None else None
        step = axis.step.value if axis.step is not None else None
        count = interior.rounds(axis.name)
        if axis.variable is None or start is None or not step or not count:
            raise Undecided("how far a loop around it goes is not a number")
        yield Round(axis.variable.name, start, step, count, axis.name)


def _first(place: Polynomial, interior: Interior) -> Polynomial:
    """The place of a thread's first item, of which the others must be the neighbours."""
    for along in interior.along:
        item = f"{ITEM}{along.item}"
        if along.several and place.coefficient(item) != place.coefficient(f"@{along.axis}"):
            raise Undecided("items are not side by side")
        place = place.without([item])
    return place


def _ends(place: Polynomial, rounds: Iterable[Round]) -> tuple[Polynomial, Polynomial]:
    """The least and the greatest place in all rounds, over items."""
    low = high = place.without([f"{COUNTER}{turn.name}" for turn in rounds])
    for turn in rounds:
        least, most = turn.ends(factor(place, f"{COUNTER}{turn.name}"))
        low, high = low + Polynomial.constant(least), high + Polynomial.constant(most)
    return low, high


def holds(condition: Condition, values: Mapping[str, int]) -> bool | None:
    """Whether a condition holds where symbols have these values; None where they do not say."""
    match condition:
        case Always(value=value):
            return value
        case Every(parts=parts) | Some(parts=parts):
            found = [holds(part, values) for part in parts]
            if None in found:
                return None
            return all(found) if isinstance(condition, Every) else any(found)
        case Compare(op=op, form=form) if form.symbols <= values.keys():
            number = sum(_number(monomial, values) * by for monomial, by in form.terms)
            return number >= 0 if op == ">=" else (number == 0) == (op == "==")
    return None


def _number(monomial: tuple[str, ...], values: Mapping[str, int]) -> int:
    found = 1
    for name in monomial:
        found *= values[name]
    return found


def reached(group: Window, one: Taken) -> Iterator[tuple[Row, int]]:
    """The rows that the first item takes of, and where in these, in rounds that come to it."""
    return _places(group, one, every_round=False)


def _places(group: Window, one: Taken, *, every_round: bool) -> Iterator[tuple[Row, int]]:
    for turns in product(*(range(turn.count) for turn in one.rounds)):
        values = {turn.counter: n for turn, n in zip(one.rounds, turns, strict=True)}
        if not every_round and any(holds(c, values) is False for c in one.access.guard):
            continue
        moved = {
            f"{COUNTER}{turn.name}": turn.start + turn.step * n
            for turn, n in zip(one.rounds, turns, strict=True)
        }
        row, within = [], 0
        for sizes in [*group.strides, ()]:
            form = group.steps(one, sizes)
            number = dict(form.terms).get((), 0)
            number += sum(factor(form, name) * by for name, by in moved.items())
            if sizes:
                row.append((sizes, number))
            else:
                within = number
        yield tuple(row), within
