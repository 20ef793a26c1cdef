"""The ratio of two medians with an interval, from samples that were taken in turn.

A round takes each program twice, once in the order and once against it (A B B A), so that a clock
that drifts steadily falls on both alike. Its samples are consecutive: samples ``2 r`` and ``2 r +
1`` of every program are those of round ``r``. The interval is a percentile bootstrap over whole
rounds, the same ones for both programs: what moved both at once moves the ratio little, and
does not count. Source: Efron and Tibshirani, "An Introduction to the Bootstrap", chapters 8 and
13. Of fewer than five rounds, where resampling says little, it is between the extremes, and beyond
them where these are not wide enough. The constants are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

PER_ROUND = 2  # samples of one program in a round
_LEVEL = 0.99  # many candidates are compared with one baseline: 95 % would be wrong too often
_RESAMPLES = 1000
_SEED = 0x0B5E55ED  # any one: the same samples give the same interval
# Of one to four rounds: as many times as far as the extremes, in logarithms. So it holds the ratio
# 99 times of 100 where the noise is normal; the extremes alone hold it 67, 97, 99.8 and 100 times.
_WIDER = (8.0, 1.4, 1.0, 1.0)


@dataclass(frozen=True)
class Ratio:
    """A ratio of two durations and the interval that it is claimed to lie in."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Of the interval, relative to its lower end: 0.01 is one per cent."""
        return self.high / self.low - 1

    @property
    def error(self) -> float:
        """The factor by which the ratio may be off, to the side where that is larger."""
        return max(self.high / self.value, self.value / self.low)

    @property
    def beyond(self) -> float:
        """The factor by which the interval misses 1; 1 where it holds it."""
        return max(self.low, 1 / self.high, 1.0)

    def __str__(self) -> str:
        return f"{self.value:.4f} ({self.low:.4f} to {self.high:.4f})"


def ratio(baseline: Sequence[float], other: Sequence[float]) -> Ratio:
    """The median of ``other`` over that of ``baseline``; both of whole rounds, in seconds."""
    pairs = np.array([baseline, other], np.float64).reshape(2, -1, PER_ROUND)
    rounds = pairs.shape[1]
    below, above = np.median(pairs, axis=(1, 2))
    value = float(above / below)
    if rounds <= len(_WIDER):
        wider = _WIDER[rounds - 1]
        low, high = pairs[1].min() / pairs[0].max(), pairs[1].max() / pairs[0].min()
        return Ratio(value, *(value * float(end / value) ** wider for end in (low, high)))
    chosen = np.random.default_rng(_SEED).integers(0, rounds, (_RESAMPLES, rounds))
    drawn = np.median(pairs[:, chosen].reshape(2, _RESAMPLES, -1), axis=2)
    tail = 50 * (1 - _LEVEL)
    low, high = np.percentile(drawn[1] / drawn[0], (tail, 100 - tail))
    return Ratio(value, min(float(low), value), max(float(high), value))
