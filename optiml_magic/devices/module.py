"""A cubin loaded into this process: its variables, and a launch plan run on a stream."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic.errors import MachineError
from optiml_magic.model.build import Build, ModuleVariable
from optiml_magic.model.launch import Argument, BufferArgument, LaunchPlan

_STATIC_SHARED = 48 << 10  # bytes of shared memory that a launch gets without asking for more
#: ptxas loads the last elements of a row by a vector that ends behind them, in memory that the
#: block has anyway, since it gets 128 bytes at a time; compute-sanitizer takes it for an error.
_VECTOR = 16


@dataclass(frozen=True)
class Place:
    """Where a buffer lies on the card."""

    address: int
    nbytes: int


@dataclass
class _Variable:
    array: Any  # its bytes on the card
    image: Any  # what it holds before the first launch
    constant: bool
    own: bool = True  # whether that is what the module was loaded with


class CudaModule:
    """Kernels and variables of one build, on the current device of CuPy."""

    def __init__(self, build: Build) -> None:
        import cupy

        self._cp = cupy
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "kernel.cubin"
            path.write_bytes(build.cubin)
            self._loaded = cupy.RawModule(path=str(path))
            self._loaded.compile()
        self._variables = {v.name: self._variable(v) for v in build.variables if v.referred}
        self.changing: set[str] = set()
        self.launched: set[str] = set()  # kernels that are loaded for sure
        self.digest = build.digest

    def fill(self, contents: Mapping[str, Any]) -> None:
        """Every variable as it is before the first launch: its own bytes, or those given.

        A constant that has its own bytes keeps them, as no kernel can write to it.
        """
        for name, variable in self._variables.items():
            if name in contents:
                variable.image, variable.own = contents[name], False
            if not (variable.own and variable.constant):
                variable.array[...] = variable.image

    def note_changes(self) -> bool:
        """Remember the variables that a run has changed; every later run sets them back itself.

        That stands in its time, like everything else that a run needs; tables cost nothing there.
        Whether there are any that were not known before.
        """
        found = {
            name
            for name, variable in self._variables.items()
            if name not in self.changing
            and not bool(self._cp.array_equal(variable.array, variable.image))
        }
        self.changing |= found
        return bool(found)

    def run(self, plan: LaunchPlan, places: Mapping[str, Place], stream: Any) -> None:
        """Start everything that the plan says, in order; returns before it has ended."""
        runtime = self._cp.cuda.runtime
        with stream:
            for name in self.changing:
                variable = self._variables[name]
                variable.array.data.copy_from_device_async(
                    variable.image.data, variable.array.nbytes, stream
                )
            for name in plan.zeros:
                runtime.memsetAsync(places[name].address, 0, places[name].nbytes, stream.ptr)
            for launch in plan.launches:
                function = self._loaded.get_function(launch.kernel)
                self.launched.add(launch.kernel)
                shared = -(-launch.shared // _VECTOR) * _VECTOR
                if shared > _STATIC_SHARED:
                    function.max_dynamic_shared_size_bytes = shared
                arguments = tuple(_argument(a, places) for a in launch.arguments)
                function(launch.grid, launch.block, arguments, shared_mem=shared)

    def _variable(self, known: ModuleVariable) -> _Variable:
        try:
            pointer = self._loaded.get_global(known.name)
        except self._cp.cuda.driver.CUDADriverError as unknown:
            raise MachineError(
                f"the driver does not find the variable `{known.name}` of the kernel: {unknown}",
                fix="declare it at namespace scope and not static",
            ) from unknown
        array = self._cp.ndarray(known.nbytes, np.uint8, pointer)
        return _Variable(array, array.copy(), known.space == "constant")


def _argument(argument: Argument, places: Mapping[str, Place]) -> Any:
    if isinstance(argument, BufferArgument):
        return np.uint64(places[argument.buffer].address)
    raw = bytes.fromhex(argument.raw)
    # CuPy passes a NumPy array of one element by value, whatever its size.
    return np.frombuffer(raw, np.dtype((np.void, len(raw))))[:1]
