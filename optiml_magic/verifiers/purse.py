"""Seconds for something that can be done in part."""

from __future__ import annotations

import time


class Purse:
    """So many ``seconds`` from now on, for things that cost about as much as the dearest so far."""

    def __init__(self, seconds: float, each: float = 0.0) -> None:
        """``each`` is what is known before of the seconds that one thing takes."""
        self._until = time.monotonic() + seconds
        self._last = time.monotonic()
        self._each = each

    @property
    def affords(self) -> bool:
        """Whether one more is likely to end in time."""
        return time.monotonic() + self._each <= self._until

    def paid(self) -> None:
        """One more has been done, since the last was or since the beginning."""
        now = time.monotonic()
        self._each, self._last = max(self._each, now - self._last), now
