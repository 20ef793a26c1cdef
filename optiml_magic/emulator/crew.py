"""The host threads that run a grid's blocks, and what they have counted so far."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.layout import CONTROL
from optiml_magic.emulator.meeting import Met, met
from optiml_magic.emulator.memory import Bytes
from optiml_magic.emulator.records import Fields, Kernel, Worker, table_of
from optiml_magic.emulator.tally import Raw

if TYPE_CHECKING:
    from optiml_magic.emulator.jit import Native

Blocks = NDArray[np.int64]  # linear block indices


class Crew:
    """Workers over one set of allocations; ``run`` may be called again with other blocks."""

    def __init__(
        self,
        native: Native,
        kernel: Kernel,
        workers: Sequence[Worker],
        parameters: Bytes,
        areas: Sequence[tuple[int, Bytes]],
        *,
        count: bool,
    ) -> None:
        self._native = native
        self._kernel = kernel
        self.workers = workers
        self._control = Fields(CONTROL)
        self.table, self.sectors = table_of(areas)
        self._kept = parameters, areas  # the records hold their addresses
        self.spans = np.cumsum([0, *(-(-data.nbytes // 128) * 4 for _, data in areas)])
        self._written = np.zeros(self.sectors if count else 1, np.uint8)
        for worker in workers:
            worker.track(self.sectors if count else 0)
            worker.record.set(
                params=parameters.ctypes.data,
                table=self.table.ctypes.data,
                table_count=len(areas),
                control=self._control.address,
                stop=self._control.address + CONTROL.offset["stop"],
                written=self._written.ctypes.data,
            )

    def run(
        self, first: int, last: int, order: Blocks | None = None, *, count: bool
    ) -> Fields | None:
        """Run blocks ``first`` to ``last`` (exclusive), of ``order`` or of the grid itself.

        Returns the record of the fault in the lowest block that reported one.
        """
        self._control.set(next=first, total=last, order=0 if order is None else order.ctypes.data)
        for worker in self.workers:
            worker.record.set(count=int(count))
        self._work(min(last - first, len(self.workers)))
        faults = [w.record for w in self.workers if w.record.get("fault_kind")]
        return min(faults, key=lambda record: record.get("fault_block"), default=None)

    def counted(self) -> Raw:
        """What all workers counted together, since they began."""
        workers = self.workers
        return Raw(
            blocks=np.sum([w.blocks for w in workers], axis=0),
            idle=np.sum([w.idle for w in workers], axis=0),
            sites=np.sum([w.sites for w in workers], axis=0),
            read_per_block=sum(w.record.get("read_per_block") for w in workers),
            memory_warps=sum(w.record.get("memory_warps") for w in workers),
        )

    def met(self, ran: int, total: int) -> Met:
        """Where the atomics of a grid meet, after so many blocks of all."""
        turns, blocks = np.sum([w.met for w in self.workers], axis=0)
        return met(turns, blocks, ran, total) if len(turns) else Met(0, 0)

    def touched(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Distinct sectors read and written so far, for each allocation."""
        read = self.workers[0].stamps != 0
        for other in self.workers[1:]:
            np.logical_or(read, other.stamps, out=read)
        bounds = zip(self.spans[:-1].tolist(), self.spans[1:].tolist(), strict=True)
        pairs = [
            (np.count_nonzero(read[a:b]), np.count_nonzero(self._written[a:b])) for a, b in bounds
        ]
        both = np.array(pairs, np.int64).reshape(-1, 2)
        return both[:, 0], both[:, 1]

    def _work(self, threads: int) -> None:
        """Ctypes releases the interpreter's lock, so the workers run side by side."""
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
        work = prototype(self._native.worker)
        code = self._native.address(self._kernel.symbol)
        running = [
            threading.Thread(target=work, args=(worker.record.address, code), daemon=True)
            for worker in self.workers[:threads]
        ]
        try:
            for thread in running:
                thread.start()
            for thread in running:
                thread.join()
        except BaseException:
            self._control.set(stop=1)
            for thread in running:
                if thread.ident is not None:  # those that run still use the records
                    thread.join()
            raise
