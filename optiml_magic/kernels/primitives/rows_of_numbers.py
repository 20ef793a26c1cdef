"""Strides that are numbers, as of ``#define N 4096``: from one row to the next like a size's.

Where a kernel says how long its rows are by a name, an index is a sum over products of names, each
of them a stride. Where it says so by numbers, ``4096 * y + x + 4095`` is a row below and an element
to the left, though nothing in it is called a row: threads of other axes are that far apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod

from optiml_magic.kernels.polynomial import Monomial, Polynomial
from optiml_magic.kernels.primitives.indices import COUNTER, Along

Sizes = tuple[str, ...]  # names, and numbers in digits
_FEW_ROWS = 16  # rows from one to another that are rows of one stride, and no plane: ours
_SHORTEST = 32  # elements of a row; what is nearer lies beside: ours


def stride(sizes: Sizes) -> Polynomial:
    """The elements from one step of a stride to the next."""
    names = tuple(name for name in sizes if not name.isdigit())
    return Polynomial.of({names: prod(int(n) for n in sizes if n.isdigit())})


def lengths(
    form: Polynomial, along: Sequence[Along], numbers: Iterable[int] = ()
) -> dict[Sizes, list[int]]:
    """The numbers that strides are beside each product of sizes, the longest first.

    A thread's index along another axis than x is so many elements from the next; a round of a loop
    is where that is no less than there are indices along x. Where no axis shows it, as in
    ``a[i - W]``, they are among the ``numbers`` of elements that accesses to the array are away.
    """
    across = {f"@{a.axis}" for a in along if a.axis != "x"}
    wide = [a.bound.value for a in along if a.axis == "x" and a.bound is not None]
    found: dict[Sizes, set[int]] = {}
    for monomial, factor in form.terms:
        inside = [n for n in monomial if n[0] == "@"]
        if len(inside) != 1:
            continue
        turns = inside[0].startswith(COUNTER) and wide and (wide[0] or 0) > 1
        least = wide[0] or 0 if turns else _SHORTEST if inside[0] in across else 0
        if least and abs(factor) >= max(least, _SHORTEST):
            sizes = tuple(n for n in monomial if n[0] != "@")
            found.setdefault(sizes, set()).add(abs(factor))
    if () not in found:
        found[()] = far(numbers)
    return {sizes: sorted(own, reverse=True) for sizes, own in found.items()}


def far(numbers: Iterable[int]) -> set[int]:
    """Of numbers in groups that lie apart one each, the most even; not those a few rows on."""
    found, group, last = set[int](), list[int](), 0
    for number in [*sorted({abs(n) for n in numbers} - {0}), 0]:
        if group and not 0 < number - last <= _SHORTEST:
            even = max(group, key=lambda n: n & -n)
            if group[0] > _SHORTEST and group[0] > _FEW_ROWS * max(found, default=0):
                found.add(even)
            group = []
        group.append(number)
        last = number
    return found


def taken_apart(
    steps: Mapping[Sizes, Polynomial], found: Mapping[Sizes, Iterable[int]]
) -> dict[Sizes, Polynomial]:  # fmt: skip
    """The same steps, of these strides as far as they are whole ones."""
    made: dict[Sizes, dict[Monomial, int]] = {}
    for sizes, step in steps.items():
        for moving, left in step.terms:
            for number in found.get(sizes, ()):
                many = (
                    left + (number - 1) // 2
                ) // number  # the nearest: 4095 is one less than a row
                own = tuple(sorted([*sizes, str(number)]))
                if many:
                    made.setdefault(own, {})[moving] = many
                left -= many * number  # noqa: PLW2901
            if left:
                made.setdefault(sizes, {})[moving] = left
    return {sizes: Polynomial.of(own) for sizes, own in made.items()}
