"""The emulated device with every module instrumented: it keeps a log of each launch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.emulator.launch import Limits, Run
from optiml_magic.emulator.memory import Bytes, Memory
from optiml_magic.emulator.module import Module
from optiml_magic.emulator.places import Area, plain_name
from optiml_magic.errors import UsageError
from optiml_magic.model.build import Build
from optiml_magic.ptx.parser import parse
from optiml_magic.settings import resolve
from optiml_magic.testing.instrumented import (
    LOG,
    MOST_NOTES,
    USED,
    LoggedSite,
    instrumented,
)


@dataclass(frozen=True)
class Log:
    """One launch: the notes in the order of their places, and what memory held before it.

    ``areas`` are all that can be touched, by address; ``arrays`` has the bytes of those that the
    launch was given, ``variables`` those of the module's own.
    """

    kernel: str
    sites: tuple[LoggedSite, ...]
    notes: NDArray[np.uint64]
    areas: tuple[Area, ...]
    arrays: Mapping[str, Bytes]
    variables: Mapping[str, Bytes]


class LoggedModule(Module):
    """A module of the emulator that adds a log of each launch to ``logs``."""

    def __init__(
        self, ptx: str, logs: list[Log], *, early_returns: Iterable[int], objects: Path
    ) -> None:
        module, self._sites = instrumented(parse(ptx))
        self._logs = logs
        super().__init__(module, early_returns=early_returns, objects=objects)

    def images(self) -> dict[str, Bytes]:
        """Those of the module's own variables: a copy of the whole log would take its room."""
        own = self.globals_.keys() - {LOG, USED}
        return {name: v.image.copy() for name, v in self.globals_.items() if name in own}

    def launch(  # noqa: PLR0913  # as that of every module
        self,
        kernel: str,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        *,
        dynamic_shared: int,
        arguments: Sequence[bytes],
        memory: Memory,
        limits: Limits,
        count: bool,
        variables: Mapping[str, Bytes] | None = None,
    ) -> Run:
        """As that of every module; by one host thread, so that a race ends alike each time."""
        own = self.images() if variables is None else variables
        given = {int.from_bytes(raw, "little") for raw in arguments if len(raw) == 8}
        arrays = {a.name: a.bytes.copy() for a in memory.allocations if a.address in given}
        before = {plain_name(name): content.copy() for name, content in own.items()}
        log = np.zeros(self.globals_[LOG].image.nbytes, np.uint8)
        used = np.zeros(8, np.uint8)
        run = super().launch(
            kernel,
            grid,
            block,
            dynamic_shared=dynamic_shared,
            arguments=arguments,
            memory=memory,
            limits=replace(limits, threads=1),
            count=count,
            variables={**own, LOG: log, USED: used},
        )
        notes = int(used.view(np.uint64)[0])
        if notes > MOST_NOTES:
            raise UsageError(
                f"{notes} accesses of one launch are too many to trace",
                fix=f"take smaller sizes: there is room for {MOST_NOTES}",
            )
        areas = [
            *(Area(v.address, v.image.nbytes, plain_name(n)) for n, v in self.globals_.items()),
            *(Area(a.address, a.bytes.nbytes, a.name) for a in memory.allocations),
        ]
        areas.sort(key=lambda area: area.address)
        table = log[: 16 * notes].view(np.uint64).reshape(-1, 2).copy()
        self._logs.append(Log(kernel, self._sites, table, tuple(areas), arrays, before))
        return run


class LoggedDevice(EmulatedDevice):
    """An emulated device; ``logs`` has the launches since it was made, in order."""

    def __init__(self, chip: str) -> None:
        super().__init__(chip)
        self.logs: list[Log] = []

    def _load(self, build: Build, *, checks: bool) -> Module:
        del checks  # hazards are for the device itself to find
        return LoggedModule(
            build.ptx, self.logs, early_returns=build.early_returns, objects=resolve().objects
        )
