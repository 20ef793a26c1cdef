"""The shapes of inputs as expressions of sizes, from inputs made at several sizes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.synthesis.refusals import Refused
from optiml_magic.synthesis.sizes import Extents, constant, valued

Sample = tuple[Mapping[str, int], Mapping[str, Any]]  # sizes, and the inputs made at them


def fitted(samples: Sequence[Sample]) -> dict[str, Extents] | Refused:
    """For each array the simplest shape that all samples have, or what has none.

    An extent is a number; or a size, a product of two or a square, times a number, plus a number.
    Numbers of axes that differ between samples have no expression either.
    """
    found: dict[str, Extents] = {}
    for name in samples[0][1]:
        shapes = [np.shape(values[name]) for _, values in samples]
        if len(set(map(len, shapes))) > 1:
            several = " or ".join(map(str, sorted(set(map(len, shapes)))))
            return Refused(f"`{name}` has {several} axes", 0, "give it as many at each size")
        extents = []
        for k in range(len(shapes[0])):
            seen = [(sizes, shape[k]) for (sizes, _), shape in zip(samples, shapes, strict=True)]
            extent = _fit(seen)
            if extent is None:
                numbers = ", ".join(str(n) for _, n in seen)
                return Refused(
                    f"axis {k} of `{name}` has the extents {numbers}, which no sizes explain",
                    0,
                    "make the axes of inputs from sizes alone, and name those sizes",
                )
            extents.append(extent)
        found[name] = tuple(extents)
    return found


def _fit(seen: Sequence[tuple[Mapping[str, int], int]]) -> Polynomial | None:
    first, number = seen[0]
    for candidate in _candidates(first, number):
        if all(valued(candidate, sizes) == extent for sizes, extent in seen):
            return candidate
    return None


def _candidates(sizes: Mapping[str, int], number: int) -> Iterator[Polynomial]:
    """Expressions that are the number at these sizes, the simplest first."""
    yield constant(number)
    names = [Polynomial.symbol(name) for name in sizes]
    terms = [*names, *(a * b for a, b in itertools.combinations_with_replacement(names, 2))]
    yield from (term for term in terms if valued(term, sizes) == number)
    for factor in range(1, 9):
        for term in terms:
            scaled = term * constant(factor)
            yield scaled + constant(number - valued(scaled, sizes))
