"""Which thread's element of a shared row an access is: its own, a neighbour's, or one of all.

Where a formula does not tell, the threads of a block are counted: on a ring, ``s[(t + 1) % n]``,
and where borders are mirrored or cut off, ``s[max(t - 1, 0)]``, all but the threads at the ends ask
for a neighbour, and those for one that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.domains import parted
from optiml_magic.kernels.reading import Access

_THREAD = Polynomial.symbol("threadIdx.x")


@dataclass(frozen=True)
class Near:
    """The element so far ``apart`` from a thread's own; ``ends`` have others, by the thread."""

    apart: int
    ends: Mapping[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Among:
    """One that a short loop counts through, from so far behind a thread's own to so far ahead."""

    low: int
    high: int


@dataclass(frozen=True)
class Fixed:
    """An element that all threads ask for by its number, of those that threads own."""

    thread: int


@dataclass(frozen=True)
class Beyond:
    """An element that no thread owns."""


Place = Near | Among | Fixed | Beyond


def first_element(kernel: Kernel, array: str) -> int:
    """The element that the first thread owns, ``s[t + 1]`` being each thread's own.

    Others than all threads may store elements besides, such as those of a halo.
    """
    found = dict[int, bool]()
    for access in kernel.reading.of(array):
        if access.mode != "load" and access.index is not None:
            number = (access.index - _THREAD).value
            if number is not None:
                found[number] = found.get(number, False) or _by_all(kernel, access)
    whole = [number for number, by_all in found.items() if by_all] if len(found) > 1 else [*found]
    if len(whole) > 1 or (found and not whole):
        raise NotLegal(f"a thread stores several elements of `{array}`")
    return whole[0] if whole else 0


def _by_all(kernel: Kernel, access: Access) -> bool:
    """Whether all threads of a block may come to an access, as far as their places tell."""
    found = parted(kernel, access.guard, ())
    return found is not None and found[0].count == (kernel.block[0] or 0)


def place_of(kernel: Kernel, access: Access, first: int, width: int) -> Place:
    """Raises NotLegal where it is none of these; ``width`` threads own elements from ``first``."""
    if access.index is None:
        raise NotLegal("which element it is, is not known", access.line)
    apart, at = (access.index - _THREAD).value, access.index.value
    if apart is not None:
        place: Place = Near(apart - first)
    elif at is not None and access.mode == "load" and 0 <= at - first < width:
        place = Fixed(at - first)
    elif at is not None and at >= 0 and not 0 <= at - first < width:
        place = Beyond()
    else:
        among = _among(kernel, access, first) if access.mode == "load" else None
        place = among or _counted(kernel, access, first, width)
    if isinstance(place, Near) and place.apart and not place.ends:
        place = Beyond() if _is_beyond(kernel, access, first, width) else place
    if isinstance(place, Near) and access.mode != "load" and (place.apart or place.ends):
        raise NotLegal("a thread stores a neighbour's element", access.line)
    return place


def _is_beyond(kernel: Kernel, access: Access, first: int, width: int) -> bool:
    """Whether no thread that may come to an access finds an element there that threads own."""
    found = parted(kernel, access.guard, ())
    numbers = found[0].numbers(access.index) if found is not None and access.index else None
    return numbers is not None and not ((numbers >= first) & (numbers < first + width)).any()


def _among(kernel: Kernel, access: Access, first: int) -> Among | None:
    """The places of an element that counters of a few rounds move; None where more does."""
    form = (access.index or Polynomial()) - _THREAD - Polynomial.constant(first)
    axes = {axis.name: axis for axis in kernel.reading.axes if axis.name in access.loops}
    low, high = form.without([*axes]).value, form.without([*axes]).value
    if low is None or high is None or not form.symbols <= axes.keys():
        return None
    for name in form.symbols:
        by, trips = form.coefficient(name), axes[name].trips
        if by is None or by.value is None or not trips:
            return None
        far = by.value * (trips - 1)
        low, high = low + min(far, 0), high + max(far, 0)
    return Among(low, high)


def _counted(kernel: Kernel, access: Access, first: int, width: int) -> Near:
    """The place of an element, by all threads of a block that may come there."""
    unknown = NotLegal("which element it is, is not known", access.line)
    found = parted(kernel, access.guard, ())
    numbers = found[0].numbers(access.index) if found is not None and access.index else None
    if found is None or numbers is None or not len(numbers):
        raise unknown
    threads, asked = found[0].at["threadIdx.x"], numbers - first
    several, counts = np.unique(asked - threads, return_counts=True)
    apart = int(several[counts.argmax()])
    meant = threads + apart
    other = asked != meant
    outside = (meant < 0) | (meant >= width)
    if (other & ~outside).any() or (other.any() and (outside & ~other).any()):
        raise unknown
    if (other & ((asked < 0) | (asked >= width))).any():
        raise unknown
    return Near(apart, dict(zip(threads[other].tolist(), asked[other].tolist(), strict=True)))
