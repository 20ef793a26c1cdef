"""What a task needs at least, in bytes and operations, and so in seconds on a chip.

A floor is not a promise: no kernel reaches it, since nothing overlaps perfectly. Arithmetic that
every program for the task must do is counted, an fma as two; an addition alone counts one, though
it takes the place of an fma.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from optiml_magic.chips import Chip
from optiml_magic.model.roofline import Roofs

SECTOR = 32  # bytes that device memory moves at least


@dataclass(frozen=True)
class Gather:
    """``loads`` of ``width`` bytes each at places that the data tell, from ``table`` bytes.

    Places are taken as drawn evenly, and the loads in the order in which they stand.
    """

    loads: int
    width: int
    table: int

    @property
    def distinct(self) -> float:
        """Bytes of the sectors that are touched at all, as an expectation."""
        sectors = self.table / SECTOR
        return self.table * -math.expm1(-self._touched / sectors)

    def moved(self, cache: int) -> float:
        """Bytes from device memory behind a cache of that many bytes."""
        again = self._touched * SECTOR - self.distinct
        return self.distinct + max(0.0, again) * max(0.0, 1.0 - cache / self.table)

    @property
    def _touched(self) -> int:
        return self.loads * -(-self.width // SECTOR)


@dataclass(frozen=True)
class Floor:
    """Bytes that are read and written once, operations in float32, and special functions.

    ``special`` counts what the special function units are needed for: a logarithm, an exponential,
    a sine, a reciprocal or a square root each once, a hyperbolic tangent once.
    """

    bytes: int
    flops: int = 0
    special: int = 0
    gathers: tuple[Gather, ...] = ()

    @property
    def least_bytes(self) -> int:
        """What moves behind a cache of any size."""
        return self.bytes + sum(int(g.distinct) for g in self.gathers)

    def terms(self, chip: Chip, roofs: Roofs) -> dict[str, float]:
        """Seconds that each resource alone would need, ``launch`` among them."""
        moved = self.bytes + sum(g.moved(chip.l2_bytes) for g in self.gathers)
        return {
            "memory": moved / roofs.memory,
            "fp32": self.flops / roofs.fp32,
            "special": self.special / (chip.sfu_per_sm * chip.sms * chip.clock),
            "launch": roofs.launch,
        }

    def seconds(self, chip: Chip, roofs: Roofs) -> tuple[float, str]:
        """The longest term, and its name."""
        terms = self.terms(chip, roofs)
        longest = max(terms, key=lambda name: terms[name])
        return terms[longest], longest
