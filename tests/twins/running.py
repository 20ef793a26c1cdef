"""Programs on the emulated device: many compiled at once, and what each leaves behind."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Protocol

from optiml_magic import binding
from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Array, Job
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.kernels.exits import early_returns
from optiml_magic.kernels.unit import lift
from optiml_magic.model.build import Build
from optiml_magic.model.facts import Facts
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.task import Task
from optiml_magic.problem import Problem, prepare
from optiml_magic.problem.facts import FactFinder
from optiml_magic.source.program import Program

_CHIP = chip("h200")
_INSTRUCTIONS = 100_000_000
_DEFINED = re.compile(r"^#define (\w+)", re.MULTILINE)


@cache
def _compiler() -> NvrtcCompiler:
    return NvrtcCompiler()


class Runnable(Protocol):
    """An original or a twin."""

    @property
    def text(self) -> str: ...

    @property
    def values(self) -> dict[str, Any]: ...

    @property
    def inout(self) -> tuple[str, ...]: ...


def outputs(programs: Sequence[Runnable]) -> list[dict[str, Array]]:
    """What every output holds after each of these programs was run on its values, by name.

    They are compiled as one text, each in a namespace of its own, since most of a compilation is
    its start. Raises AssertionError where one does not compile or does not run to its end.
    """
    problems = [prepare(Task(p.text, inputs=p.values, inout=p.inout), seeds=1) for p in programs]
    build = _build([problem.program.compiled_text() for problem in problems], problems)
    device = EmulatedDevice("h200")
    return [_run(device, problem, build, f"p{at}::") for at, problem in enumerate(problems)]


def facts(programs: Sequence[Runnable]) -> list[tuple[Program, Facts]]:
    """Each program with what is known of its launches on its values."""
    problems = [prepare(Task(p.text, inputs=p.values, inout=p.inout), seeds=1) for p in programs]
    build = _build([problem.program.compiled_text() for problem in problems], problems)
    return [
        (
            problem.program,
            FactFinder(problem, _CHIP)(problem.program, _plan(problem, build, f"p{at}::")),
        )
        for at, problem in enumerate(problems)
    ]


def _own(build: Build, apart: str) -> Build:
    names = {n.removeprefix(apart): low for n, low in build.names.items() if n.startswith(apart)}
    return replace(build, names=names)


def _plan(problem: Problem, build: Build, apart: str) -> LaunchPlan:
    own, first = _own(build, apart), problem.first
    return binding.plan(problem.program, problem.interface, own, first.values, first.shapes, _CHIP)


def _build(texts: Sequence[str], problems: Sequence[Problem]) -> Build:
    names = [
        f"p{at}::{name}"
        for at, problem in enumerate(problems)
        for name in binding.name_expressions(problem.program, problem.interface)
    ]
    whole = "".join(_apart(text, f"p{at}") for at, text in enumerate(texts))
    build = _compiler().compile(whole, tuple(names), _CHIP, CompileOptions())
    if isinstance(build, Build):
        return replace(build, early_returns=early_returns(lift(whole)))
    lines = whole.splitlines()
    wrong = [f"{e.message}\n  {lines[e.line - 1]}" for e in build.errors if e.line]
    raise AssertionError("\n".join(wrong) or str(build))


def _apart(text: str, namespace: str) -> str:
    """The text where nothing of it, its macros included, is seen by the others."""
    undefined = "".join(f"#undef {name}\n" for name in _DEFINED.findall(text))
    return f"namespace {namespace} {{\n{text}}}\n{undefined}"


def _run(device: EmulatedDevice, problem: Problem, build: Build, apart: str) -> dict[str, Array]:
    first, plan = problem.first, _plan(problem, build, apart)
    device.put(first.case)
    execution = device.execute(
        _own(build, apart), Job(first.case.key, plan, 0, False, _INSTRUCTIONS)
    )
    assert execution.fault is None, f"{execution.fault}\n{problem.program.text}"
    assert not execution.modified_inputs, problem.program.text
    return {
        buffer.name: device.read(first.case.key, buffer.name)
        for buffer in first.case.buffers
        if buffer.role != "input"
    }
