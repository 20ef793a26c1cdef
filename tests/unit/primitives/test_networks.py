"""Networks of exchanges, by all zeros and ones: what sorts all of these sorts all there is.

The bits of a whole number are a place's values in all cases at once.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from optiml_magic.kernels.primitives.networks import exchanges, middle


def cases(count: int) -> list[int]:
    """Of each place the zeros and ones that it has in all cases."""
    found = list[int]()
    for place in range(count):
        width = 2 << place
        values = (1 << width) - (1 << width // 2)
        while width < 1 << count:
            values |= values << width
            width *= 2
        found.append(values)
    return found


def exchanged(values: list[int], pairs: Iterable[tuple[int, int]]) -> list[int]:
    """What stands at each place after exchanges."""
    found = [*values]
    for a, b in pairs:
        found[a], found[b] = found[a] & found[b], found[a] | found[b]
    return found


def in_order(values: list[int]) -> list[int]:
    """What belongs at each place: as many ones as there are, last."""
    most = [(1 << (1 << len(values))) - 1, *([0] * len(values))]
    for value in values:
        for ones in range(len(values), 0, -1):
            most[ones] |= most[ones - 1] & value
    return most[:0:-1]


@pytest.mark.parametrize("count", range(2, 12))
def test_they_sort(count: int) -> None:
    assert exchanged(cases(count), exchanges(count)) == in_order(cases(count))


@pytest.mark.parametrize(("count", "size"), [(5, 7), (7, 13), (9, 19), (25, 96)])
def test_they_bring_the_middle_to_its_place(count: int, size: int) -> None:
    pairs = [*(middle(count) or ())]
    assert len(pairs) == size < len([*exchanges(count)])
    values = cases(count)
    ends = [exchanged(values, pairs), exchanged(values, [(b, a) for a, b in pairs])]
    wanted = in_order(values)[count // 2]
    assert [end[count // 2] == wanted for end in ends] == [True, True]


def test_of_others_none_is_known() -> None:
    assert middle(3) is middle(8) is middle(11) is None
