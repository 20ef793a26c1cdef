"""The open numbers of one program, which a tuner chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from optiml_magic.model.candidate import Proposal
from optiml_magic.model.hypothesis import TIME, Hypothesis

Point = Mapping[str, int]
"""A value of each tuned name."""
TUNER = "tuner"
"""What stands as the proposer beside a program that differs in its numbers alone."""

_FITS = Hypothesis(TIME, "lower", "other numbers fit the chip or the sizes better", (1.0, 1.3))


@dataclass(frozen=True)
class Space:
    """The values that each tuned name of a program may have, and what arithmetic says of them.

    ``present`` is the point of the program's own text. ``promise`` is an estimate in [0, 1] of how
    well a point fills the chip, 0 where it cannot run or a condition of the program forbids it:
    such points are never measured. ``text`` makes the program of a point.
    """

    values: Mapping[str, tuple[int, ...]]
    present: Point
    promise: Callable[[Point], float]
    text: Callable[[Point], str]

    def neighbours(self, point: Point) -> Iterator[Point]:
        """The points that differ from one in one name, whatever its value (Hamming distance 1)."""
        for name, values in self.values.items():
            for value in values:
                if value != point[name]:
                    yield {**point, name: value}

    def proposal(self, point: Point, before: Point, move: str = "") -> Proposal:
        """The program of a point, in place of that of another; ``move`` made its structure."""
        changed = [f"{name} = {value}" for name, value in point.items() if value != before[name]]
        return Proposal(self.text(point), ", ".join(changed), TUNER, hypothesis=_FITS, move=move)
