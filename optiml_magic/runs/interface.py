"""What calling the programs of a run needs, as plain data that goes through JSON.

Dtypes are spelled as ``model.dtypes`` spells them. A number is itself; anything else, such as the
content of a ``__constant__`` variable, has its dtype, its shape and its bytes in base64.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.binding import BoundBuffer, Interface
from optiml_magic.binding.interface import BufferRole, Place
from optiml_magic.calling import Kernels
from optiml_magic.devices.base import Case
from optiml_magic.model.dtypes import read, spelled
from optiml_magic.model.task import Task
from optiml_magic.problem import Instance, Problem
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program

_SETTINGS = ("device", "compiler", "std", "fast_math", "nvcc_args", "run_seconds")


@dataclass(frozen=True)
class Content:
    """An array, or a number that JSON has no place for."""

    dtype: str
    shape: tuple[int, ...]
    base64: str


@dataclass(frozen=True)
class Parameter:
    """A buffer that a kernel takes, or a variable that is filled before it runs."""

    name: str
    role: BufferRole
    dtype: str
    lanes: int
    line: int
    place: Place


@dataclass(frozen=True)
class Callable:
    """How the programs of a run are compiled and called; ``shapes`` are those of its inputs."""

    name: str
    buffers: tuple[Parameter, ...]
    scalars: tuple[str, ...]
    structs: dict[str, str]
    shapes: dict[str, tuple[int, ...]]
    values: dict[str, bool | int | float | Content]
    outputs: dict[str, str]
    headers: dict[str, str]
    include: tuple[str, ...]
    defines: dict[str, str]
    about: tuple[str, ...]
    settings: dict[str, bool | int | float | str]

    @classmethod
    def of(cls, kernels: Kernels) -> Callable:
        """That of the programs of a run."""
        problem, first, task = kernels.problem, kernels.problem.instances[0], kernels.problem.task
        found = problem.interface
        return cls(
            problem.name,
            tuple(
                Parameter(b.name, b.role, spelled(b.dtype), b.lanes, b.line, b.place)
                for b in found.buffers
            ),
            found.scalars,
            {name: spelled(dtype) for name, dtype in found.structs.items()},
            {name: tuple(map(int, shape)) for name, shape in first.shapes.items()},
            {name: _written(value) for name, value in first.values.items()},
            dict(task.outputs),
            dict(task.headers),
            tuple(map(str, task.include)),
            {name: str(value) for name, value in task.defines.items()},
            kernels.about,
            {name: getattr(kernels.settings, name) for name in _SETTINGS},
        )

    def kernels(self, program: str) -> Kernels:
        """The same, ready to be called; ``program`` is the input kernel."""
        task = Task(
            outputs=self.outputs,
            headers=self.headers,
            include=self.include,
            defines=self.defines,
            name=self.name,
        )
        interface = Interface(
            tuple(
                BoundBuffer(b.name, b.role, read(b.dtype), b.lanes, b.line, b.place)
                for b in self.buffers
            ),
            self.scalars,
            {name: read(dtype) for name, dtype in self.structs.items()},
            task.constants,
            self.defines,
        )
        values = {name: _read(value) for name, value in self.values.items()}
        first = Instance(0, "as saved", values, self.shapes, Case("call", ()))
        parsed = parse_program(program)
        problem = Problem(task, self.name, parsed, "given", interface, (first,), "", ())
        return Kernels(problem, resolve(self._known), self.about)

    @property
    def _known(self) -> Mapping[str, Any]:
        """Of the settings those that this release has."""
        return {name: value for name, value in self.settings.items() if name in _SETTINGS}


def _written(value: Any) -> bool | int | float | Content:
    plain = type(value) in (bool, int) or (type(value) is float and math.isfinite(value))
    if plain and abs(value) < 1 << 53:
        number: bool | int | float = value
        return number
    array = np.ascontiguousarray(value)
    held = base64.b64encode(array.tobytes()).decode()
    return Content(spelled(array.dtype), np.shape(value), held)


def _read(value: bool | int | float | Content) -> Any:
    if not isinstance(value, Content):
        return value
    raw = base64.b64decode(value.base64)
    array = np.frombuffer(raw, read(value.dtype)).reshape(value.shape).copy()
    return array if value.shape else array[()]
