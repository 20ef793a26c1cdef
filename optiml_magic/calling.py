"""A program as a callable on a user's arrays: what that needs is data, and outlives the search."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic.calls import call
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.options import options_of
from optiml_magic.devices.base import Case
from optiml_magic.devices.choice import choose
from optiml_magic.exports import Exportable
from optiml_magic.inprocess import InProcess, library_of
from optiml_magic.model.task import Task
from optiml_magic.problem import Instance, Problem
from optiml_magic.result import Kernel
from optiml_magic.session import Session, compiler_of, session
from optiml_magic.settings import Settings
from optiml_magic.source.program import parse_program


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
    brought = {bound.name for bound in problem.interface.buffers if bound.place == "parameter"}
    values = {
        name: value
        for name, value in first.values.items()
        if name not in brought or not isinstance(value, (np.ndarray, list))
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
