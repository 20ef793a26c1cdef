"""What chooses points of a space: ask for one, tell what it was worth."""

from __future__ import annotations

from typing import Protocol

from optiml_magic.model.space import Point


class Tuner(Protocol):
    """One search over the numbers of one program. Deterministic for a seed and an order of tell."""

    def ask(self) -> Point | None:
        """A point that was never asked for; None where it has no more for now, or ever."""

    def tell(self, point: Point, value: float | None) -> None:
        """What a point is worth, more is better; None where it failed."""
