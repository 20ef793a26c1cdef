"""The shapes of outputs at sizes at which the reference is not asked."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.problem.inputs import whole_numbers
from optiml_magic.problem.sizes import Sizing

_SEED = 900  # of the inputs at small sizes
_FIRST = (11, 23)  # of the small sizes; several differ from one another


def foreseen(
    answered: Callable[[Mapping[str, Any]], Mapping[str, Array]],
    outputs: Sequence[str],
    sizing: Sizing,
    values: Mapping[str, Any],
) -> dict[str, tuple[int, ...]]:
    """The shapes of outputs for ``values``, as those at two small sizes tell.

    An axis is a size, or the axis of an input, that it is equal to both times, or a constant. One
    that is none of them is left out, with its output.
    """
    seen: list[tuple[dict[str, tuple[int, ...]], dict[str, int]]] = []
    for first in _FIRST:
        sizes = {
            name: min(size, first + 2 * at) for at, (name, size) in enumerate(sizing.given.items())
        }
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                drawn = sizing.draw(sizes, _SEED)
                answer = answered(drawn)
            except Exception:  # noqa: BLE001  # the task's own code: it does not know such sizes
                return {}
        seen.append(({n: a.shape for n, a in answer.items()}, _extents(drawn)))
    own = _extents(values)
    found = {}
    for name in outputs:
        one, two = seen[0][0][name], seen[1][0][name]
        if len(one) != len(two):
            continue
        axes = [_axis(*both, seen[0][1], seen[1][1], own) for both in zip(one, two, strict=True)]
        if None not in axes:
            found[name] = tuple(axis for axis in axes if axis is not None)
    return found


def _extents(values: Mapping[str, Any]) -> dict[str, int]:
    """Numbers that an axis may be equal to, by what they are."""
    found = whole_numbers(values)
    for name, value in values.items():
        if isinstance(value, np.ndarray):
            found |= {f"{name} {at}": extent for at, extent in enumerate(value.shape)}
            found[f"{name} size"] = value.size
    return found


def _axis(
    one: int, two: int, first: Mapping[str, int], second: Mapping[str, int], own: Mapping[str, int]
) -> int | None:
    same = {
        own[n] for n in first if n in second and n in own and (first[n], second[n]) == (one, two)
    }
    if len(same) == 1:
        return same.pop()
    return one if one == two and not same else None
