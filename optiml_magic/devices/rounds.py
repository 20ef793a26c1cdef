"""How long to take samples: warm up until steady, then in rounds until the ratios are narrow."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence

from optiml_magic.devices.base import Sampling
from optiml_magic.devices.ratio import ratio

_GROWTH = 1.25  # rounds from one look at the intervals to the next
_STRETCH = 0.05  # seconds; the clock of an idle card needs some ten milliseconds to rise
_STEADY = 0.005  # relative difference of the medians of two stretches
_LONGEST = 0.8  # seconds of warming up, steady or not
LASTING = 2 * _STRETCH
"""Seconds of a batch that leaves the card warm."""

Batch = Callable[[int], float]  # seconds of one launch of the program of that number


def warm(batch: Callable[[], float], now: Callable[[], float] = time.monotonic) -> int:
    """Repeat a batch until two stretches of time in a row have the same median; returns how often.

    So that neither the rise of the clock nor the first touch of the memory stands in a sample. One
    batch that lasts two stretches is enough.
    """
    began = now()
    before, count = 0.0, 0
    while True:
        opened = now()
        found: list[float] = []
        while not found or now() - opened < _STRETCH:
            found.append(batch())
        count += len(found)
        median, lasted = statistics.median(found), now() - began
        steady = abs(before / median - 1) < _STEADY
        if steady or lasted > _LONGEST or (count == 1 and lasted >= LASTING):
            return count
        before = median


def sample(
    programs: int,
    batch: Batch,
    sampling: Sampling,
    now: Callable[[], float] = time.monotonic,
) -> list[list[float]]:
    """Samples of each program, two a round in the order A B B A; the first is the baseline.

    Rounds end when the interval of every ratio to the baseline is as narrow as asked for, at the
    most rounds, or where one more, as long as those before, would outlast the time; before
    ``least`` of them where all others are hopeless, or surely far faster.
    That the *width* ends them else, and not what the ratio is, keeps the interval honest.
    """
    found: list[list[float]] = [[] for _ in range(programs)]
    began, look = now(), sampling.least
    for done in range(1, sampling.most + 1):
        for at in (*range(programs), *reversed(range(programs))):
            found[at].append(batch(at))
        early = done < sampling.least
        if early and (hopeless(found, sampling.hopeless) or ample(found, sampling.ample)):
            break
        if done >= look:
            if all(ratio(found[0], other).width < sampling.width for other in found[1:]):
                break
            look = max(look + 1, int(look * _GROWTH))
        if (now() - began) * (done + 1) > sampling.seconds * done:
            break
    return found


def ample(found: Sequence[Sequence[float]], limit: float) -> bool:
    """Whether the worse end of each ratio is ``limit`` times below 1; 0 stands for no limit."""
    others = found[1:]
    return bool(limit and others) and all(limit * ratio(found[0], one).high < 1 for one in others)


def hopeless(found: Sequence[Sequence[float]], limit: float) -> bool:
    """Whether the better end of each ratio is beyond ``limit``; 0 stands for no limit."""
    others = found[1:]
    return bool(limit and others) and all(ratio(found[0], one).low > limit for one in others)
