"""The state of a card while something was timed on it: clocks, temperature, power, slowdowns."""

from __future__ import annotations

from dataclasses import dataclass

_MOVED = 0.03  # of the clock between two programs that were timed in turn; ours


@dataclass(frozen=True)
class Condition:
    """One reading: clocks in MHz, temperature in degrees Celsius, power in watts.

    ``limits`` are the reasons that the driver gives for a clock below the highest one.
    """

    sm_clock: int
    memory_clock: int
    temperature: int
    power: float
    limits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Conditions:
    """The readings before and after a timing, or in ``absent`` why there are none.

    ``sm_clock`` is the median of those read right after each batch of the program that was timed,
    ``baseline_clock`` that of the one which it was timed against; 0 where nobody could read so
    often. ``crowded`` says why others may have timed on the card at the same time.
    """

    before: Condition | None = None
    after: Condition | None = None
    sm_clock: float = 0.0
    baseline_clock: float = 0.0
    absent: str = ""
    crowded: str = ""

    @property
    def limits(self) -> tuple[str, ...]:
        """What held the clocks back, before or after."""
        readings = [reading for reading in (self.before, self.after) if reading is not None]
        return tuple(dict.fromkeys(limit for reading in readings for limit in reading.limits))

    @property
    def clock_ratio(self) -> float:
        """The clock of the program over that of the baseline; 1 where either is unknown."""
        if not self.sm_clock or not self.baseline_clock:
            return 1.0
        return self.sm_clock / self.baseline_clock

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of the times has to know, without figures; nothing where all was well."""
        found = []
        if self.absent:
            found.append(f"clocks and temperature were not read: {self.absent}")
        if self.crowded:
            found.append(f"others may have timed on the card meanwhile: {self.crowded}")
        if self.limits:
            found.append(f"the card held its clocks back while timing: {', '.join(self.limits)}")
        if abs(self.clock_ratio - 1) > _MOVED:
            found.append(
                f"the clock differed by more than {_MOVED:.0%} between the input kernel and a "
                "candidate that was timed in turn with it"
            )
        return tuple(found)
