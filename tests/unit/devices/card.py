"""A ``cupy`` on host memory with a clock of its own: kernels are Python, their times are given.

Each launch takes its kernel's seconds over the card's speed at that moment; everything else takes
none. ``happened`` tells what was asked for, in order.
"""

from __future__ import annotations

import contextlib
import ctypes
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

Kernel = Callable[..., None]  # of the addresses and the bytes of scalars that a launch is given
L2_BYTES = 64 << 10


class ndarray(np.ndarray):  # noqa: N801  # CuPy's name
    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.__array_interface__["data"][0])

    def get(self, stream: Any = None) -> Any:
        return np.asarray(self).copy()

    def set(self, array: Any) -> None:
        self[...] = array


class Card:
    """Kernels by name, and how long one launch takes; ``speed`` of the card at a time."""

    def __init__(
        self,
        kernels: dict[str, tuple[Kernel, float]],
        *,
        speed: Callable[[float], float] = lambda _: 1.0,
        noise: float = 0.0,
    ) -> None:
        self.kernels, self.speed, self.noise = kernels, speed, noise
        self.time = 0.0
        self.happened: list[tuple[Any, ...]] = []
        self.capturing: list[tuple[str, tuple[Any, ...]]] | None = None
        self._rng = np.random.default_rng(0)

    def launch(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self.capturing is not None:
            self.capturing.append((name, arguments))
            return
        run, seconds = self.kernels[name]
        self.happened.append(("launch", name, arguments))
        self.time += (
            seconds / self.speed(self.time) * np.exp(self.noise * self._rng.standard_normal())
        )
        run(*arguments)

    def module(self) -> types.ModuleType:
        """A module to stand for ``cupy``."""
        cupy, card = types.ModuleType("cupy"), self

        class Function:
            max_dynamic_shared_size_bytes = 0

            def __init__(self, name: str) -> None:
                self.name = name

            def __call__(self, grid: Any, block: Any, arguments: Any, *, shared_mem: int) -> None:
                card.launch(self.name, arguments)

        class RawModule:
            def __init__(self, *, path: str) -> None:
                pass

            def compile(self) -> None:
                pass

            def get_function(self, name: str) -> Function:
                return Function(name)

        class Graph:
            def __init__(self, launches: list[tuple[str, tuple[Any, ...]]]) -> None:
                self.launches = launches

            def upload(self, stream: Any) -> None:
                pass

            def launch(self, stream: Any) -> None:
                card.happened.append(("graph", len(self.launches)))
                for name, arguments in self.launches:
                    card.launch(name, arguments)

        class Stream:
            ptr = 0

            def __init__(self, *, non_blocking: bool) -> None:
                assert non_blocking

            def __enter__(self) -> None:
                pass

            def __exit__(self, *_: object) -> None:
                pass

            def synchronize(self) -> None:
                assert card.capturing is None

            def begin_capture(self) -> None:
                card.capturing = []

            def end_capture(self) -> Graph:
                launches, card.capturing = card.capturing, None
                assert launches is not None
                return Graph(launches)

        class Event:
            time = 0.0

            def record(self, stream: Any) -> None:
                card.happened.append(("event",))
                self.time = card.time

            def synchronize(self) -> None:
                pass

        class Device:
            pci_bus_id = "0000:00:04.0"
            attributes = {"L2CacheSize": L2_BYTES}  # noqa: RUF012
            mem_info = (1 << 30, 2 << 30)

            def __init__(self, index: int = 0) -> None:
                pass

            def use(self) -> None:
                pass

            def __enter__(self) -> None:
                pass

            def __exit__(self, *_: object) -> None:
                pass

            def synchronize(self) -> None:
                pass

        class Pool:
            malloc = None

            def free_all_blocks(self) -> None:
                pass

        @contextlib.contextmanager
        def using_allocator(_: Any) -> Iterator[None]:
            yield

        def memset(address: int, byte: int, nbytes: int, stream: int) -> None:
            card.happened.append(("memset", address, byte, nbytes))
            ctypes.memset(address, byte, nbytes)

        def made(array: Any) -> Any:
            return np.array(array).view(ndarray)

        cupy.__dict__.update(
            __getattr__=lambda name: getattr(np, name),
            bincount=lambda *a, **k: made(np.bincount(*a, **k)),
            array=lambda *a, **k: made(np.array(*a, **k)), ndarray=ndarray, asarray=made, empty=lambda *a: made(np.empty(*a)), RawModule=RawModule,
            random=types.SimpleNamespace(
                Generator=np.random.Generator, Philox4x3210=np.random.Philox
            ),
            get_default_memory_pool=Pool,
            cuda=types.SimpleNamespace(
                Device=Device, Stream=Stream, Event=Event, MemoryPool=Pool,
                using_allocator=using_allocator,
                get_elapsed_time=lambda begin, end: 1e3 * (end.time - begin.time),
                runtime=types.SimpleNamespace(CUDARuntimeError=FaultOnCard, memsetAsync=memset),
                driver=types.SimpleNamespace(CUDADriverError=FaultOnCard),
            ),
        )  # fmt: skip
        return cupy


class FaultOnCard(Exception):  # noqa: N818
    """What CuPy raises."""


def floats(address: Any, count: int) -> Any:
    """The float32 array at an address, as a kernel sees it."""
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(int(address)))
