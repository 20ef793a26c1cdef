"""Which elements of an array a block asks for, beside where its place says that they begin."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from optiml_magic.kernels.primitives.lane_values import NOWHERE, By, Flags, Lanes, Whole

REACH = 48 * 1024  # elements to either side of the first that is asked for: a block's bytes
WARP = 32  # threads, and banks
SECTOR = 8  # elements of 4 bytes
FAR = 2**40  # beyond all elements


@dataclass
class Touched:
    """``certain`` elements each block asks for, ``filled`` ones it stores before it loads any."""

    by: By | None = None
    origin: int = 0
    least: int = 0
    most: int = 0
    loads: int = 0
    stores: int = 0
    refused: tuple[str, int] | None = None
    passes: tuple[int, int] = (0, 0)  # of banks, as its elements lie, and with one left out of 33
    requests: int = 0
    sectors: int = 0
    begins: bool = False  # whether what was there before may be asked for
    certain: Flags = field(default_factory=lambda: np.zeros(2 * REACH, np.bool_))
    filled: Flags = field(default_factory=lambda: np.zeros(2 * REACH, np.bool_))
    #: The least and the greatest place that each thread asks for, where it asks for any.
    firsts: Lanes | None = None
    lasts: Lanes | None = None
    #: Least and greatest places of pointers that are made of the array's own name.
    formed: list[tuple[By, int, int]] = field(default_factory=list)

    def refuse(self, reason: str, line: int) -> None:
        if self.refused is None:
            self.refused = reason, line

    def form(self, at: Whole | None, may: Flags, line: int) -> None:
        """A pointer made of the name of the array."""
        if at is None or not at.known[may].all():
            self.refuse("where a pointer into it leads is not followed", line)
        elif may.any():
            self.formed.append((at.by, int(at.at[may].min()), int(at.at[may].max())))

    def ask(
        self, at: Whole | None, lanes: tuple[Flags, Flags], line: int,
        *, load: bool, store: bool, often: int = 1,
    ) -> None:  # fmt: skip
        """Elements that threads load, store, or load and then store: those that may and must."""
        may, must = lanes
        asking = often * int(may.sum())
        self.loads, self.stores = self.loads + load * asking, self.stores + store * asking
        if self.refused is not None or not asking:
            return
        told = at is not None and bool(at.known[may].all())
        ends = at.ends if at is not None and not told else None
        if at is None or (ends is not None and ends[1] - ends[0] >= REACH):
            self.refuse("which of its elements a thread asks for is not followed", line)
            return
        places: Lanes = at.at[may] if ends is None else np.arange(ends[0], ends[1] + 1)
        least, most = int(places.min()), int(places.max())
        if self.by is None:
            self.by, self.origin, self.least, self.most = at.by, least, least, most
        if at.by != self.by:
            self.refuse("its elements do not all lie by the place of the block", line)
            return
        if least <= self.origin - REACH or most >= self.origin + REACH:
            self.refuse("a block asks for too many of its elements", line)
            return
        self.least, self.most = min(self.least, least), max(self.most, most)
        if self.firsts is None or self.lasts is None:
            self.firsts, self.lasts = np.full_like(at.at, FAR), np.full_like(at.at, -FAR)
        self.firsts[may] = np.minimum(self.firsts[may], least if ends else places)
        self.lasts[may] = np.maximum(self.lasts[may], most if ends else places)
        if ends is None:
            self._pass(at.at, may, often)
        places = places - self.origin + REACH
        sure = at.at[must & (ends is None)] - self.origin + REACH
        if load:
            self.begins = self.begins or not self.filled[places].all()
        if store:
            self.filled[sure] = True
        self.certain[sure] = True

    def _pass(self, at: Lanes, may: Flags, often: int) -> None:
        """How often banks and sectors are asked by the first warp that asks, for all of them."""
        asking = np.flatnonzero(may)
        warp = asking[asking // WARP == asking[0] // WARP]
        words = np.unique(at[warp]) - self.origin
        many = often * -(-len(asking) // WARP)
        self.requests += many
        self.sectors += many * len(np.unique(words // SECTOR))
        each = (int(np.bincount(b % WARP).max()) for b in (words, words + words // WARP))
        plain, spread = (many * n for n in each)
        self.passes = self.passes[0] + plain, self.passes[1] + spread

    def reach(self) -> None:
        """Begin no later than pointers that are made of the name of the array lead."""
        begins = [least for by, least, _ in self.formed if by == self.by]
        least = min([self.least, *begins])
        if least > self.origin - REACH:
            self.least = least

    @property
    def count(self) -> int:
        return self.most - self.least + 1

    def at_ends(self) -> bool:
        """Whether its first and its last element are certainly asked for."""
        return bool(self.certain[[n - self.origin + REACH for n in (self.least, self.most)]].all())

    def whole(self) -> bool:
        """Whether all of its elements are certainly stored, before any of them is loaded."""
        first = self.least - self.origin + REACH
        return not self.begins and bool(self.filled[first : first + self.count].all())

    @property
    def place(self) -> By:
        return self.by or NOWHERE
