"""A program as a callable on a user's arrays: what that needs is data, and outlives the search."""

from __future__ import annotations

import base64
import math
import weakref
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic.binding import BoundBuffer, Interface
from optiml_magic.calls import call
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.options import options_of
from optiml_magic.devices.base import Case
from optiml_magic.devices.choice import choose
from optiml_magic.exports import Exportable
from optiml_magic.inprocess import InProcess, library_of
from optiml_magic.model.called import Called, Content, Number, Parameter
from optiml_magic.model.dtypes import read, spelled
from optiml_magic.model.task import Task
from optiml_magic.problem import Instance, Problem
from optiml_magic.result import Kernel
from optiml_magic.session import Session, compiler_of, session
from optiml_magic.settings import Settings, resolve
from optiml_magic.source.program import parse_program

_SETTINGS = ("device", "compiler", "std", "fast_math", "nvcc_args", "run_seconds")
_KEPT = 1 << 20  # characters of arrays in a journal; ours
_EXACT = 1 << 53  # integers from here on are not the same in every reader of JSON


@dataclass(frozen=True)
class Kernels:
    """Makes the programs of one problem callable; ``about`` goes into their exports.

    The problem is the bare one that ``of`` leaves: without a reference and without the arrays that
    every call brings itself, so this pickles, and keeps no array of the user's alive.
    """

    problem: Problem
    settings: Settings
    about: tuple[str, ...] = ()

    @classmethod
    def of(cls, problem: Problem, settings: Settings, about: tuple[str, ...] = ()) -> Kernels:
        """Those of a problem that was searched."""
        return cls(_bare(problem), settings, about)

    @classmethod
    def again(cls, called: Called, program: str, about: tuple[str, ...] = ()) -> Kernels:
        """Those of a run that is known by its data; ``program`` is its input kernel."""
        settings = {name: value for name, value in called.settings.items() if name in _SETTINGS}
        return cls(_problem(called, program), resolve(settings), about)

    def __repr__(self) -> str:
        return f"<kernels of {self.problem.name} on {self.settings.device}>"

    @property
    def data(self) -> Called:
        """What ``again`` makes the same of."""
        problem, first, task = self.problem, self.problem.instances[0], self.problem.task
        found = problem.interface
        return Called(
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
            {name: getattr(self.settings, name) for name in _SETTINGS},
            dict(problem.verified),
        )

    def __call__(self, text: str) -> Kernel:
        """NumPy arrays run in a device host that stays for the next call, those of a GPU here."""
        problem, first = self.problem, self.problem.instances[0]
        asked = self.settings.device
        parameters = [bound.name for bound in problem.interface.named("input", "inout")]
        exportable = Exportable(
            problem.name,
            parse_program(text),
            problem.interface,
            first.shapes,
            first.values,
            problem.task.outputs,
            self.about,
            options_of(problem.task, self.settings),
            problem.verified,
        )
        return Kernel(
            exportable,
            [*parameters, *exportable.scalars],
            [bound.name for bound in problem.interface.named("output")],
            choose(asked).name if asked == "auto" else asked,
            Calls(problem, self.settings),
        )


def _bare(problem: Problem) -> Problem:
    """What calls and exports read of a problem: its interface, its scalars, what is compiled in."""
    task, first = problem.task, problem.instances[0]
    own = (task.kernel.parent.absolute(),) if isinstance(task.kernel, Path) else ()
    held = {bound.name for bound in problem.interface.buffers if bound.place == "variable"}
    held |= {init.value for init in problem.program.inits if isinstance(init.value, str)}
    values = {
        name: value
        for name, value in first.values.items()
        if name in held or not isinstance(value, (np.ndarray, list))
    }
    return replace(
        problem,
        task=Task(
            outputs=task.outputs,
            headers=task.headers,
            include=(*own, *task.include),
            defines=task.defines,
            name=problem.name,
        ),
        instances=(Instance(0, first.condition, values, dict(first.shapes), Case("call", ())),),
        homes={},
        references=None,
    )


def noted(problem: Problem, settings: Settings) -> Called | None:
    """What a journal keeps of how programs are called; None where that holds large arrays."""
    called = Kernels.of(problem, settings).data
    held = (len(v.base64) for v in called.values.values() if isinstance(v, Content))
    return called if sum(held) <= _KEPT else None


def _problem(called: Called, program: str) -> Problem:
    task = Task(
        outputs=called.outputs,
        headers=called.headers,
        include=called.include,
        defines=called.defines,
        name=called.name,
    )
    interface = Interface(
        tuple(
            BoundBuffer(b.name, b.role, read(b.dtype), b.lanes, b.line, b.place)
            for b in called.buffers
        ),
        called.scalars,
        {name: read(dtype) for name, dtype in called.structs.items()},
        task.constants,
        called.defines,
    )
    values = {name: _read(value) for name, value in called.values.items()}
    first = Instance(0, "as it was", values, called.shapes, Case("call", ()))
    parsed = parse_program(program)
    verified = called.verified
    return Problem(
        task, called.name, parsed, "given", interface, (first,), "", (), verified=verified
    )


def _written(value: Any) -> Number | Content:
    plain = type(value) in (bool, int) or (type(value) is float and math.isfinite(value))
    if plain and abs(value) < _EXACT:
        number: Number = value
        return number
    array = np.ascontiguousarray(value)
    held = base64.b64encode(array.tobytes()).decode()
    return Content(spelled(array.dtype), np.shape(value), held)


def _read(value: Number | Content) -> Any:
    if not isinstance(value, Content):
        return value
    raw = base64.b64decode(value.base64)
    array = np.frombuffer(raw, read(value.dtype)).reshape(value.shape).copy()
    return array if value.shape else array[()]


class Calls:
    """Calls of one kernel: what they need is opened with the first, and closed with this.

    A copy or a pickle has what is needed to open it again.
    """

    def __init__(self, problem: Problem, settings: Settings) -> None:
        self._problem = problem
        self._settings = settings
        self._opened = ExitStack()
        self._finalizer = weakref.finalize(self, self._opened.close)

    def __reduce__(self) -> tuple[type[Calls], tuple[Problem, Settings]]:
        return Calls, (self._problem, self._settings)

    def __call__(self, program: str, values: Mapping[str, Any]) -> dict[str, Any]:
        if any(library_of(value) for value in values.values()):
            return self._in_process(program, values)
        return call(self._problem, self._members.tools, program, values)

    @cached_property
    def _members(self) -> Session:
        members = self._opened.enter_context(session(self._settings, task=self._problem.task))
        members.begin(self._problem)
        return members

    @cached_property
    def _in_process(self) -> InProcess:
        options = options_of(self._problem.task, self._settings)
        hosted = self._opened.enter_context(closing(compiler_of(self._settings, options)))
        return InProcess(self._problem, CachedCompiler(hosted, self._settings.compiled), options)
