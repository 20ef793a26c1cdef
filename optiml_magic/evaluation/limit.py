"""What is left of a command's seconds, and what its end will need, by what this very run took."""

from __future__ import annotations

import math

from optiml_magic.timings import Timings

# Both were measured on an H200; ours.
_HAZARDS = 3.0  # seconds of looking for the finalists' hazards, most of them compute-sanitizer's
_MEASURING = 1.0  # seconds of measuring an input kernel, before that is known
_SHARE = 1 / 3  # of all seconds, that are kept at most; ours
_LATE = 0.1  # of all seconds, by which a command may end late


class Limit:
    """The seconds of a search from the beginning of its ``timings``, those of its end kept back.

    At its end the finalists are looked at for hazards, timed once more, and the winner and the
    input kernel at another size: the last three take about as long as it took to measure the input
    kernel, each. Where the profiler does not ``settle``, the other size alone is looked at, and
    nobody waits for counters.
    """

    def __init__(
        self, timings: Timings, seconds: float = math.inf, *, settles: bool = True
    ) -> None:
        self._timings = timings
        self._seconds = seconds
        self._settles = settles
        self._measuring = _MEASURING if settles else 0.0
        self._counting = 0.0
        self._own = 0.0

    def measured(self, seconds: float) -> None:
        """What it took to measure the input kernel."""
        self._measuring = seconds

    def asked_of_input(self, seconds: float) -> None:
        """What it took to look at the input kernel in ways that no candidate is looked at."""
        self._own += seconds

    def counted(self, seconds: float) -> None:
        """What it took until the counters of a batch were there, from asking for them."""
        self._counting = min(self._counting or seconds, seconds)

    def kept(self, tried: int) -> float:
        """Seconds for the end, without those of the other size until a candidate is tried."""
        settling = _HAZARDS + self._measuring if self._settles else 0.0
        elsewhere = 2 * self._measuring if tried else 0.0
        return min(_SHARE * self._seconds, settling + elsewhere)

    def first(self, spent: float) -> float:
        """Seconds of a first candidate, where the input kernel took so many.

        On a card one as slow as that is given up after a round of timing.
        """
        own = self._measuring + self._own
        return max(spent - own, _MEASURING) if self._settles else spent

    @property
    def elapsed(self) -> float:
        """Seconds since the beginning."""
        return self._timings.elapsed

    @property
    def left(self) -> float:
        """Seconds of the command; less than none where it is late."""
        return self._seconds - self.elapsed

    @property
    def affords_counters(self) -> bool:
        """Whether ncu would be done with a batch before the end begins."""
        return not self._settles or self.left - self.kept(1) >= self._counting

    def affords_finalist(self, seconds: float) -> bool:
        """Whether there is time for one more to be scrutinised, for so many seconds."""
        return self.left + _LATE * self._seconds - seconds >= _HAZARDS + self._measuring

    @property
    def affords_another_size(self) -> bool:
        """Whether two programs can be timed there."""
        return self.left + _LATE * self._seconds >= 2 * self._measuring
