"""A ``cupy`` whose arrays lie in host memory and whose kernels are written down, not run."""

from __future__ import annotations

import types
from typing import Any

import numpy as np


class ndarray(np.ndarray):  # noqa: N801  # CuPy's name
    @property
    def data(self) -> Any:
        return types.SimpleNamespace(ptr=self.__array_interface__["data"][0])

    def set(self, array: Any) -> None:
        assert type(array) is np.ndarray
        assert array.dtype == self.dtype
        self[...] = array


class Launches:
    """What the module asked for since the last ``clear``."""

    def __init__(self) -> None:
        self.modules: list[dict[str, Any]] = []
        self.calls: list[tuple[str, tuple[int, ...], tuple[int, ...], tuple[Any, ...], int]] = []
        self.shared: dict[str, int] = {}
        self.variables: dict[str, bytearray] = {}  # by name expression
        self.allocated: list[ndarray] = []
        self.sms = 132


def module(launches: Launches) -> types.ModuleType:
    """A module to stand for ``cupy``."""
    cupy = types.ModuleType("cupy")

    def made(array: Any) -> ndarray:
        found: ndarray = np.asarray(array).view(ndarray)
        launches.allocated.append(found)
        return found

    class Function:
        def __init__(self, name: str) -> None:
            self.__dict__["name"] = name

        def __setattr__(self, attribute: str, value: int) -> None:
            assert attribute == "max_dynamic_shared_size_bytes"
            launches.shared[self.name] = value

        def __call__(self, grid: Any, block: Any, arguments: Any, *, shared_mem: int) -> None:
            launches.calls.append((self.name, grid, block, arguments, shared_mem))

    class RawModule:
        def __init__(self, **given: Any) -> None:
            launches.modules.append(given)
            self.names = given["name_expressions"]

        @property
        def module(self) -> Any:
            return types.SimpleNamespace(mapping={n: f"lowered {n}" for n in self.names})

        def get_global(self, name: str) -> bytearray:
            assert name.startswith("lowered &")
            return launches.variables.setdefault(name.removeprefix("lowered "), bytearray(4096))

        def get_function(self, name: str) -> Function:
            assert name in self.names
            return Function(name)

    class Device:
        @property
        def attributes(self) -> dict[str, int]:
            return {"MultiProcessorCount": launches.sms}

    cupy.__version__ = "14.2.0"  # type: ignore[attr-defined]
    cupy.ndarray = ndarray  # type: ignore[attr-defined]
    cupy.ascontiguousarray = np.ascontiguousarray  # type: ignore[attr-defined]
    cupy.RawModule = RawModule  # type: ignore[attr-defined]
    cupy.cuda = types.SimpleNamespace(Device=Device)  # type: ignore[attr-defined]
    cupy.empty = lambda shape, dtype: made(np.full(shape, 77, dtype))  # type: ignore[attr-defined]
    cupy.empty_like = lambda a: made(np.full_like(np.asarray(a), 77))  # type: ignore[attr-defined]
    cupy.from_dlpack = lambda a: made(np.from_dlpack(getattr(a, "on_host", a)))  # type: ignore[attr-defined]
    return cupy
