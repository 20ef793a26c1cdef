"""What the best of a run is chosen by: seconds, or joules among programs that are about as fast.

Speed comes first: a program that takes more than ``SLOWER`` times as long as the fastest does not
win, however little it draws.
"""

from __future__ import annotations

from typing import Literal

from optiml_magic.model.measurement import Measurement, speedup_interval

Objective = Literal["speed", "energy"]
ENERGY = "nvml__energy.sum"  # joules of the card in one run, from warm caches
SLOWER = 1.05  # ours
_ENERGY_ERROR = 1.05  # within which two means of two seconds each are the same; ours


def joules_of(measurement: Measurement | None) -> float | None:
    """Of one run; None where it was not measured."""
    return measurement.get(ENERGY) if measurement is not None else None


def saving_interval(root: Measurement, best: Measurement) -> tuple[float, float, float] | None:
    """How many times fewer joules ``best`` needs: ``(factor, low, high)``; None where unknown."""
    before, after = joules_of(root), joules_of(best)
    if not before or not after:
        return None
    return before / after, before / after / _ENERGY_ERROR, before / after * _ENERGY_ERROR


def better(objective: Objective, before: Measurement, after: Measurement) -> bool:
    """Whether ``after``, which the objective chose, is significantly better than ``before``.

    It is where it is faster; of energy also where it needs fewer joules.
    """
    if speedup_interval(before, after)[1] > 1.0:
        return True
    saved = saving_interval(before, after) if objective == "energy" else None
    return saved is not None and saved[1] > 1.0
