"""The notes of a log as touches: which thread met which bytes of which array."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.layout import GLOBAL_BASE, LOCAL_BASE, SHARED_BASE
from optiml_magic.model.counters import Access
from optiml_magic.testing.instrumented import SITE_BITS, THREAD_BITS
from optiml_magic.testing.logged_device import Log

Thread = tuple[int, int]  # the block in the grid and the thread in the block, x fastest


@dataclass(frozen=True, slots=True)
class Touch:
    """Bytes of an array that one access reads or writes, ``offset`` from the array's start.

    ``array`` is the name of a buffer or scratch of the task or of a ``__device__`` variable, and
    empty for shared memory, where the offset is that in the block's window.
    """

    array: str
    access: Access
    offset: int
    width: int  # bytes
    line: int  # of LaunchTrace.text; 0 unknown

    def elements(self, itemsize: int) -> range:
        """The elements of the array that lie in it."""
        return range(self.offset // itemsize, -(-(self.offset + self.width) // itemsize))


class Touches:
    """The notes of a log, sorted by thread, each once; ``accesses`` counts them all.

    The counts are those of executed accesses to global memory, by line, access and width.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        addresses, words = log.notes[:, 0], log.notes[:, 1]
        sites = (words & np.uint64((1 << SITE_BITS) - 1)).astype(np.int64)
        named = np.array([site.shared for site in log.sites], bool)[sites]
        # Where an instruction names no space, its address says by its value which memory it means.
        window = ~named & (addresses >= SHARED_BASE) & (addresses < LOCAL_BASE)
        distant = ~named & (addresses >= GLOBAL_BASE)
        self.accesses = self._counted(sites[distant])
        order = np.lexsort((addresses, words))
        rows = log.notes[order]
        first = np.ones(len(rows), bool)
        first[1:] = (rows[1:] != rows[:-1]).any(axis=1)
        kept = order[first]
        start = np.where(window, np.uint64(SHARED_BASE), np.uint64(0))
        self._addresses = (addresses - start)[kept].astype(np.int64)
        self._threads = (words[kept] >> np.uint64(SITE_BITS)).astype(np.int64)
        self._sites = sites[kept]
        self._shared, self._global = (named | window)[kept], distant[kept]

    def by_thread(
        self, blocks: int, threads: int, *, shared: bool = False
    ) -> dict[Thread, frozenset[Touch]]:
        """What every thread of the grid touched in global memory, or in shared memory."""
        chosen = self._shared if shared else self._global
        places, place = np.unique(self._addresses[chosen], return_inverse=True)
        pairs = self._sites[chosen] * len(places) + place
        distinct, which = np.unique(pairs, return_inverse=True)
        made = [
            self._touch(site, int(places[at]), shared=shared)
            for site, at in (divmod(pair, len(places)) for pair in distinct.tolist())
        ]
        nothing: frozenset[Touch] = frozenset()
        found = {(b, t): nothing for b in range(blocks) for t in range(threads)}
        owners, order = self._threads[chosen], which.tolist()
        starts = np.flatnonzero(np.diff(owners, prepend=-1)).tolist()
        for begin, end in zip(starts, [*starts[1:], len(order)], strict=False):
            owner = divmod(int(owners[begin]), 1 << THREAD_BITS)
            found[owner] = frozenset(made[at] for at in order[begin:end])
        return found

    def _touch(self, number: int, address: int, *, shared: bool) -> Touch:
        site, areas = self._log.sites[number], self._log.areas
        at = -1 if shared else bisect_right(areas, address, key=lambda area: area.address) - 1
        name, offset = ("", address) if at < 0 else (areas[at].name, address - areas[at].address)
        return Touch(name, site.access, offset, site.width, site.line)

    def _counted(self, sites: NDArray[np.int64]) -> dict[tuple[int, Access, int], int]:
        total: dict[tuple[int, Access, int], int] = {}
        for site, count in zip(self._log.sites, np.bincount(sites).tolist(), strict=False):
            key = site.line, site.access, site.width
            if count:
                total[key] = total.get(key, 0) + count
        return total
