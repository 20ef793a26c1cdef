"""What items of a thread load in common, before any text is made: for the chance of an edit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.decided import Decided
from optiml_magic.kernels.primitives.indices import COUNTER, ITEM, Along, factor

_SEEN = 16  # rounds of a loop that are looked at
_WORD = 4


@dataclass(frozen=True)
class Saved:
    """By several items along an axis a thread saves a ``share`` of its loads.

    Of each array every further one loads so many elements ``more``, which the others do not, each
    of so many ``words``.
    """

    share: float
    more: Mapping[str, float]
    words: Mapping[str, float]


def saved_by(decided: Decided, along: Along, items: int) -> Saved:
    """What a thread saves by so many items along one axis."""
    total, found = _elements(decided, along, items)
    _, single = _elements(decided, along, 1)
    if not total:
        return Saved(0.0, {}, {})
    words = {array: size for (array, *_), size in found.items()}
    every, one = (Counter(array for array, *_ in seen) for seen in (found, single))
    more = {array: (every[array] - one[array]) / max(1, items - 1) for array in words}
    return Saved(1 - len(found) / total, more, words)


def _elements(
    decided: Decided, along: Along, items: int
) -> tuple[int, dict[tuple[str, object], float]]:
    """How many loads so many items make, and the words of each element, by array and place."""
    loads = [*_loads(decided, along, items)]
    return len(loads), dict(loads)


def _loads(
    decided: Decided, along: Along, items: int
) -> Iterator[tuple[tuple[str, object], float]]:
    for at, access in decided.elements:
        moving, own = {f"{ITEM}{along.item}": range(items)}, False
        for axis in decided.kernel.reading.loops(access):
            count = decided.interior.rounds(axis.name)
            if axis.variable is not None and count and not decided.keeps(axis.node):
                moving[f"{COUNTER}{axis.variable.name}"] = range(min(count, _SEEN))
            # Each item goes through such a loop by itself, from where it begins for that.
            unknown = not count and not decided.interior.most_rounds(axis.name)
            own |= unknown and not decided.keeps(axis.node)
        steps = []
        for sizes, form in sorted(at.steps.items()):
            by = [factor(form, name) for name in moving]
            digits = [(factor(form, name), op, n) for name, op, n in along.digits(form)]
            rest = form.without([*moving, *(name for name, _, _ in along.digits(form))])
            number = dict(rest.terms).get((), 0)
            steps.append((sizes, rest - Polynomial.constant(number), number, by, digits))
        words = (access.element.size or _WORD) / _WORD
        for values in product(*moving.values()):
            place = tuple(
                (sizes, rest, number + sum(b * v for b, v in zip(by, values, strict=True))
                 + sum(b * (values[0] // n if op == "/" else values[0] % n) for b, op, n in digits))
                for sizes, rest, number, by, digits in steps
            )  # fmt: skip
            yield (at.array, (at.base, place, own and values[0])), words
