"""The lanes that reach an access: a launch's threads, walked through guards and loops by rounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from optiml_magic.kernels.expressions import every as parts_of
from optiml_magic.kernels.reading import Access, Axis, Reading
from optiml_magic.kernels.symbols import Always, Condition
from optiml_magic.kernels.tree import Verbatim, walk
from optiml_magic.testing.lanes import MOST_ROUNDS, Lanes, Numeric

_LEFT = frozenset({"it is left early", "the kernel may be left in it"})
_MOST_LANES = 4_000_000
_Key = tuple[tuple[Condition, ...], tuple[str, ...], bool]


@dataclass
class Walker:
    """Walks the threads of one launch; ``trips`` are axes that run otherwise than they say."""

    reading: Reading
    numeric: Numeric
    threads: Lanes
    trips: dict[str, str] = field(default_factory=dict)
    endless: set[str] = field(default_factory=set)
    walked: set[str] = field(default_factory=set)
    _found: dict[_Key, Lanes] = field(default_factory=dict)

    def reaching(self, access: Access) -> Lanes:
        """Every thread and round in which an access runs, or may run."""
        return self.lanes(access.guard, access.loops, testing=self._tests(access))

    def lanes(
        self, guard: tuple[Condition, ...], loops: tuple[str, ...], *, testing: bool = False
    ) -> Lanes:
        key = guard, loops, testing
        if key not in self._found:
            self._found[key] = self._lanes(guard, loops, testing=testing)
        return self._found[key]

    def _lanes(
        self, guard: tuple[Condition, ...], loops: tuple[str, ...], *, testing: bool
    ) -> Lanes:
        if loops:
            axis = self.reading.axis(loops[-1])
            if len(axis.guard) >= len(guard):
                # An access in a test that was moved before its loop has less of a guard.
                return self._rounds(axis, self.lanes(guard, loops[:-1]), testing=testing)
        if not guard:
            return self.threads
        before = self.lanes(guard[:-1], loops, testing=testing)
        return self.passing(guard[-1], before)

    def passing(self, condition: Condition, lanes: Lanes) -> Lanes:
        """The lanes on which a condition holds, or may hold."""
        holds, known = self.numeric.truth(condition, lanes)
        kept = holds | ~known
        return lanes.perhaps(known).where(kept)

    def _tests(self, access: Access) -> bool:
        """Whether an access is part of its loop's test, which runs once more than the rounds."""
        if not access.loops:
            return False
        axis = self.reading.axis(access.loops[-1])
        at = len(axis.guard)
        if axis.first or isinstance(axis.test, Always):
            return False
        if len(access.guard) > at and access.guard[at] == axis.test:
            return False
        update = axis.node.update
        return update is None or not any(part is access.node for part in parts_of(update))

    def _rounds(self, axis: Axis, before: Lanes, *, testing: bool) -> Lanes:
        left = axis.reason in _LEFT or any(
            isinstance(inner, Verbatim) and inner.jumps for inner in walk(axis.node)
        )
        parts: list[Lanes] = []
        counts = np.zeros(len(before), np.int64)
        active, position, total = before, np.arange(len(before)), 0
        for number in range(MOST_ROUNDS):
            if not len(active):
                break
            now = active.in_round(axis.name, number)
            if left and number:
                now = now.perhaps(np.zeros(len(now), bool))
            holds, known = self.numeric.truth(axis.test, now)
            kept = holds | ~known
            after = now.perhaps(known).where(kept)
            ran = now if axis.first or testing else after
            parts.append(ran)
            total += len(ran)
            counts[position if axis.first else position[kept]] += 1
            active, position = after, position[kept]
            if total > _MOST_LANES or (number and not known.any()):
                break
        if len(active):
            return self._endless(axis, before)
        self._check_trips(axis, before, counts)
        found = _joined(parts) if parts else before.in_round(axis.name, 0)
        if not testing:
            counter = self.reading.symbols[axis.name]
            self.numeric.bounds(counter, found.names[axis.name][found.must])
        return found

    def _endless(self, axis: Axis, before: Lanes) -> Lanes:
        """One round that stands for all."""
        self.endless.add(axis.name)
        lanes = before.in_round(axis.name, 0).perhaps(np.zeros(len(before), bool))
        lanes.lost = before.lost | {axis.name}
        return lanes

    def _check_trips(self, axis: Axis, before: Lanes, counts: NDArray[np.int64]) -> None:
        """What an axis says of its start, step and stop against the rounds of its test."""
        start, step, stop = axis.start, axis.step, axis.stop
        if not axis.exact or start is None or step is None or stop is None or axis.scaled:
            return
        self.walked.add(axis.name)
        if axis.trips is not None and (counts != axis.trips)[before.must].any():
            wrong = counts[before.must & (counts != axis.trips)][0]
            self.trips[axis.name] = f"trips says {axis.trips}, its test {wrong}"
            return
        begin, known = self.numeric.form(start, before)
        end, end_known = self.numeric.form(stop, before)
        by, by_known = self.numeric.form(step, before)
        sure = known & end_known & by_known & before.must & (by != 0).astype(bool)
        by = np.where(by == 0, 1, by)
        said = np.maximum(-(-(end - begin) // by), axis.first)
        wrong_lanes = sure & (said != counts).astype(bool)
        if wrong_lanes.any():
            at = int(np.flatnonzero(wrong_lanes)[0])
            self.trips[axis.name] = (
                f"from {begin[at]} by {by[at]} to {end[at]} is {said[at]} rounds, "
                f"its test says {counts[at]}"
            )


def _joined(parts: Sequence[Lanes]) -> Lanes:
    first = parts[0]
    return Lanes(
        {name: np.concatenate([part.names[name] for part in parts]) for name in first.names},
        np.concatenate([part.thread for part in parts]),
        np.concatenate([part.must for part in parts]),
        first.lost,
    )
