"""What a reference costs, measured at small sizes first: where, how often, how large it is asked.

The time that a call takes at the given sizes is foreseen from two smaller ones, with a margin. A
reference that would take longer than all answers may is asked at smaller sizes alone: the task is
verified there, and only measured at its own.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.problem.references import References
from optiml_magic.problem.sizes import Sizes, Sizing, spelled

_FEW = 1 << 13  # elements of the inputs up to which nothing is worth being foreseen
_SHARES = (64, 16, 4)  # of each size
_STEEPEST = 2.5  # the power of a size with which the time may grow, before two are known
_MARGIN = 0.25  # on that power, afterwards
SLOW = 1.0  # seconds of a call, from which on nothing is asked of a reference that can be left out
_FASTER = 0.25  # seconds of NumPy from which on a card is tried: a search asks some sixty times
_SURE = 16  # calls that fit into the seconds: what is foreseen of so short a one is measured again
_HOURS = 7200.0
_SEED = 900  # of inputs that are drawn to see what they cost


def affordable(
    references: References, sizing: Sizing | None, values: Mapping[str, Any], seconds: float
) -> tuple[Sizes, str]:
    """Smaller sizes, where one call at those of ``sizing`` would take over ``seconds``, and why.

    Nothing in the most cases. Decides as well whether the card answers.
    """
    few = seconds == math.inf and not references.may_use_card
    if sizing is None or few or _is_small(sizing, values):
        return {}, ""
    whole = _foreseen(references, sizing, seconds)
    references.by_numpy = whole.seconds
    if whole.seconds > _FASTER and whole.largest and references.may_use_card:
        references.try_card(whole.largest[1], spelled(whole.largest[0]))
        if references.is_on_card:
            whole = _foreseen(references, sizing, seconds)
    references.seconds = whole.seconds
    if whole.seconds <= seconds or whole.largest is None:
        return {}, ""
    likely = whole.likely
    about = f"about {likely:.0f} s" if likely < _HOURS else "hours"
    return whole.largest[0], f": the reference would take {about} there"


def foreseen(references: References, sizing: Sizing, values: Mapping[str, Any]) -> float:
    """Seconds that one call would likely take, by some at smaller sizes."""
    return 0.0 if _is_small(sizing, values) else _foreseen(references, sizing, SLOW).likely


def _is_small(sizing: Sizing, values: Mapping[str, Any]) -> bool:
    """Whether nothing of such inputs, or sizes where there are none, is worth being foreseen."""
    elements = sum(v.size for v in values.values() if isinstance(v, np.ndarray))
    return max(elements, math.prod(sizing.given.values())) <= _FEW


@dataclass(frozen=True)
class _Foreseen:
    """Seconds of a call, with and without a margin; the largest sizes tried, and their inputs."""

    seconds: float
    likely: float
    largest: tuple[Sizes, Mapping[str, Any]] | None = None


def _foreseen(references: References, sizing: Sizing, seconds: float) -> _Foreseen:
    points: list[tuple[int, float]] = []
    largest: tuple[Sizes, Mapping[str, Any]] | None = None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for share in _SHARES:
            if points and _at(points, share) > seconds / 4:
                break
            sizes = {name: max(1, size // share) for name, size in sizing.given.items()}
            try:
                values = sizing.draw(sizes, _SEED + share)
                if not points:
                    references.time(values)  # what a first call loads is no part of its cost
                measured = references.time(values)
                if _at([*points, (share, measured)], 1) > seconds >= _SURE * measured:
                    # Another process may have had the core: that would be foreseen to take hours.
                    measured = min(measured, references.time(values), references.time(values))
            except Exception:  # noqa: BLE001, S112  # the task's own code: it knows no such sizes
                continue
            points.append((share, measured))
            largest = sizes, values
            if len(points) > 1 and _at(points, 1) <= seconds / 4:
                break
    return _Foreseen(_at(points, 1), _at(points, 1, margin=0.0), largest)


def _at(points: Sequence[tuple[int, float]], share: int, margin: float = _MARGIN) -> float:
    """Seconds foreseen at another share of the sizes; 0.0 where nothing is known."""
    if not points:
        return 0.0
    last, seconds = points[-1]
    power = _STEEPEST
    if len(points) > 1:
        before, earlier = points[-2]
        grown = math.log(max(seconds, 1e-9) / max(earlier, 1e-9)) / math.log(before / last)
        power = min(_STEEPEST + 1, max(0.5, grown)) + margin
    foreseen: float = seconds * (last / share) ** power
    return foreseen
