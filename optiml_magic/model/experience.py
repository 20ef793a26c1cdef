"""What earlier searches found, by the kind of kernel: which edits won, and with what numbers.

Nothing here holds a name that an author chose, nor any of a program's text: a kind says what a
kernel does, a move names a rule and a place by its ordinal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

FARTHEST = 4  # powers of four that a size may differ by; ours
_ELSEWHERE = 2  # powers of four that another family, class or reduction counts as; ours
_ESTIMATED = 1  # powers of four that estimates count as where times are measured; ours
_SHIPPED = 0.75  # what counts of an entry that the user's own runs did not make; ours
_MOST = 24  # entries that one run begins with: the nearest; ours


@dataclass(frozen=True)
class Nest:
    """What one launch does.

    ``patterns`` are its distinct accesses to global memory: what is done, to elements of which
    type, how far apart those of neighbouring lanes lie and those of neighbouring rounds.
    ``reductions`` are the distinct ones with their operators and types, ``depth`` the loops around
    an access at most; ``together`` says by what its threads meet. ``sizes`` are classes, powers of
    four: bytes that it is given, bytes that it leaves, threads.
    """

    patterns: tuple[str, ...]
    reductions: tuple[str, ...]
    depth: int
    together: tuple[str, ...]
    sizes: tuple[int, int, int]


@dataclass(frozen=True)
class Kind:
    """What the launches of a program do, in their order, on a family of chips."""

    launches: tuple[Nest, ...]
    family: str

    def distance(self, other: Kind) -> int | None:
        """How far apart two kinds are, in powers of four of a size; None: not comparable."""
        if self._shape != other._shape:
            return None
        mine, theirs = ([n for nest in k.launches for n in nest.sizes] for k in (self, other))
        far = max((abs(a - b) for a, b in zip(mine, theirs, strict=True)), default=0)
        if far > FARTHEST:
            return None
        reduced = [[nest.reductions for nest in k.launches] for k in (self, other)]
        differing = (self.family != other.family) + (reduced[0] != reduced[1])
        return far + _ELSEWHERE * differing

    @property
    def _shape(self) -> tuple[Nest, ...]:
        """What is never taken for another: how memory is met, and how threads meet."""
        return tuple(replace(nest, sizes=(0, 0, 0), reductions=()) for nest in self.launches)


@dataclass(frozen=True)
class Move:
    """An edit by a rule, and what the numbers that it left open were in the end."""

    name: str  # the rule, the ordinal of the launch and the place in it
    point: dict[str, int]


@dataclass(frozen=True)
class Origin:
    """The run that an entry comes from: when it was, and what took part."""

    run: str
    date: str
    driver: str
    compiler: str
    version: str  # of this package


@dataclass(frozen=True)
class Evidence:
    """What a run measured: seconds of its input kernel and of its best program.

    ``error`` is the factor by which their ratio may be off. ``program`` is the digest of the input
    kernel's text, so that a benchmark can leave out what came from the kernel that it measures.
    """

    origin: Origin
    chip: str
    source: str
    program: str
    input_seconds: float
    best_seconds: float
    error: float


@dataclass(frozen=True)
class Entry:
    """One search: the path of moves that won, none where nothing did, and what brought nothing.

    ``vain`` are paths as well: all but the last move of each is a beginning of the one that won.
    """

    kind: Kind
    roofline: str
    moves: tuple[Move, ...]
    vain: tuple[tuple[str, ...], ...]
    evidence: Evidence

    @property
    def gain(self) -> float:
        """Times faster than the input kernel."""
        return self.evidence.input_seconds / self.evidence.best_seconds

    def guessed(self, source: str) -> bool:
        """Whether it is from estimates, and times of ``source`` are not."""
        return self.evidence.source == "estimated" != source

    @property
    def path(self) -> tuple[str, ...]:
        """The names of the moves."""
        return tuple(move.name for move in self.moves)


@dataclass(frozen=True)
class Remembered:
    """An entry that a run begins with: how far its kind is from that of the run's kernel."""

    entry: Entry
    distance: int
    own: bool


@dataclass(frozen=True)
class Known:
    """All that a run knows of kernels like its own when it begins; ``kind`` None: not told."""

    kind: Kind | None = None
    entries: tuple[Remembered, ...] = ()

    def weighed(self, roofline: str) -> list[tuple[float, Entry]]:
        """The entries with what each counts, in (0, 1], the most first.

        Near ones count more, the user's own, and of those of one kind the ones of much gain.
        """
        found = []
        for one in self.entries:
            entry = one.entry
            elsewhere = bool(roofline and entry.roofline) and entry.roofline != roofline
            far = one.distance + _ELSEWHERE * elsewhere
            share = math.log(entry.gain) / self._most[entry.kind] if entry.moves else 1.0
            found.append(((1.0 if one.own else _SHIPPED) * share / (1 + far), entry))
        return sorted(found, key=lambda pair: -pair[0])

    @cached_property
    def _most(self) -> dict[Kind, float]:
        """The logarithm of the greatest gain on each kind."""
        most: dict[Kind, float] = {}
        for entry in (one.entry for one in self.entries):
            most[entry.kind] = max(most.get(entry.kind, 0.0), math.log(entry.gain))
        return most


NOTHING_KNOWN = Known()


def known(kind: Kind | None, source: str, own: Sequence[Entry], shipped: Sequence[Entry]) -> Known:
    """Of all entries those that a kernel of this kind may learn from, the nearest first.

    ``source`` is that of the run's times: where these are measured, what was found by estimates
    counts less. Of one program and path the best stands for all.
    """
    if kind is None:
        return NOTHING_KNOWN
    found = [
        Remembered(entry, distance + _ESTIMATED * entry.guessed(source), mine)
        for entries, mine in ((own, True), (shipped, False))
        for entry in entries
        if (distance := kind.distance(entry.kind)) is not None
    ]
    found.sort(key=lambda one: (one.distance, not one.own, -one.entry.gain))
    first: dict[tuple[str, tuple[str, ...]], Remembered] = {}
    for one in found:
        first.setdefault((one.entry.evidence.program, one.entry.path), one)
    return Known(kind, tuple(first.values())[:_MOST])
