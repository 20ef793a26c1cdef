"""Every access of a run: which thread touched which bytes of which array, seen on the emulator.

What the compiler took out of the kernel is not there: a load whose value nobody needs, the second
of two equal ones. What it merged is one access, as wide as all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from optiml_magic import binding
from optiml_magic.binding.elements import element_dtype
from optiml_magic.calls import prepared
from optiml_magic.chips import DEFAULT_CHIP, chip
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.compilers.options import options_of
from optiml_magic.devices.base import Array, Case, Job
from optiml_magic.errors import KernelFailed, UsageError
from optiml_magic.kernels.signature import Kernel, Parameter
from optiml_magic.kernels.unit import lift
from optiml_magic.kernels.variables import device_variables
from optiml_magic.model.counters import Access
from optiml_magic.model.launch import BufferArgument, Dim3, Launch, ScalarArgument
from optiml_magic.model.task import Task
from optiml_magic.problem import prepare
from optiml_magic.settings import resolve
from optiml_magic.testing.logged_device import Log, LoggedDevice
from optiml_magic.testing.touches import Thread, Touch, Touches
from optiml_magic.verifiers.verify import judge

Scalar = int | float | complex | bytes | tuple[int | float | complex, ...]


@dataclass(frozen=True)
class LaunchTrace:
    """One launch of a program: what it was given, and what each thread of it touched.

    Attributes:
        kernel: its name in ``text``, with its template arguments beside it.
        grid: blocks, and ``block`` threads.
        touches: the global memory that each thread of the grid touched, once for each place;
            threads without any are there too. The keys are linear: x counts fastest.
        shared: the same of shared memory; empty unless it was asked for.
        accesses: how many were executed, repeats included, by line, access and width; global.
        buffers: the name of the array that each pointer parameter was given.
        scalars: the values of the other parameters; the bytes of a struct.
        arrays: what those of ``buffers`` held before the launch, by parameter.
        variables: the same of the module's own, flat; as bytes where the type is not known.
        text: the program whose lines are meant.
    """

    kernel: str
    template: tuple[str, ...]
    grid: Dim3
    block: Dim3
    touches: Mapping[Thread, frozenset[Touch]]
    shared: Mapping[Thread, frozenset[Touch]]
    accesses: Mapping[tuple[int, Access, int], int]
    buffers: Mapping[str, str]
    scalars: Mapping[str, Scalar]
    arrays: Mapping[str, Array]
    variables: Mapping[str, Array]
    text: str


def trace(task: Task, /, *, shared: bool = False, **sizes: int) -> tuple[LaunchTrace, ...]:
    """The launches of one run of the task's kernel, in order, at its small sizes or at ``sizes``.

    Constant and local memory are left out. Raises KernelFailed where the program does not compile
    or faults or writes to an input, and what preparing a task raises.
    """
    if sizes and not callable(task.inputs):
        raise UsageError(
            "the inputs are given arrays, which have their sizes",
            fix="make inputs a function inputs(rng, **sizes)",
        )
    smaller = {**task.sizes, **task.verify_sizes, **sizes}
    problem = prepare(replace(task, sizes=smaller, verify_sizes={}), seeds=1)
    program, settings = problem.program, resolve()
    outputs = {bound.name for bound in problem.interface.named("output")}
    values = {n: v for n, v in problem.first.values.items() if n not in outputs}
    buffers, build, plan = prepared(
        problem,
        CachedCompiler(_compiler(), settings.compiled),
        options_of(problem.task, settings),
        chip(DEFAULT_CHIP),
        program,
        values,
    )
    device = LoggedDevice(DEFAULT_CHIP)
    device.put(Case("traced", buffers))
    job = Job("traced", plan, poison=0, count=False, instructions=settings.instructions)
    verdict = judge(device.execute(build, job))
    if not verdict.passed:
        raise KernelFailed(f"{verdict.outcome}: {verdict.summary}", line=verdict.line)
    kernels = {
        build.names[x.kernel or k.name]: k
        for x, k in binding.launched(program, problem.task.defines)
    }
    likes: dict[str, Array] = {b.name: b.array for b in buffers}
    likes |= {s.name: np.empty(s.elements, s.dtype) for s in plan.scratch}
    return tuple(
        _traced(launch, kernels[launch.kernel], log, likes, program.text, shared=shared)
        for launch, log in zip(plan.launches, device.logs, strict=True)
    )


@cache
def _compiler() -> NvrtcCompiler:
    return NvrtcCompiler()


def _traced(  # what a launch was given comes from many places
    launch: Launch,
    kernel: Kernel,
    log: Log,
    likes: Mapping[str, Array],
    text: str,
    *,
    shared: bool,
) -> LaunchTrace:
    touched = Touches(log)
    pairs = list(zip(kernel.parameters, launch.arguments, strict=True))
    given = {p.name: a.buffer for p, a in pairs if isinstance(a, BufferArgument)}
    return LaunchTrace(
        kernel=kernel.name,
        template=kernel.template_arguments,
        grid=launch.grid,
        block=launch.block,
        touches=touched.by_thread(launch.blocks, launch.block_threads),
        shared=touched.by_thread(launch.blocks, launch.block_threads, shared=True)
        if shared
        else {},
        accesses=touched.accesses,
        buffers=given,
        scalars={
            p.name: _scalar(p, bytes.fromhex(a.raw))
            for p, a in pairs
            if isinstance(a, ScalarArgument)
        },
        arrays={
            name: log.arrays[buffer][: likes[buffer].nbytes]
            .view(likes[buffer].dtype)
            .reshape(likes[buffer].shape)
            for name, buffer in given.items()
        },
        variables=_variables(log, text),
        text=text,
    )


def _scalar(parameter: Parameter, raw: bytes) -> Scalar:
    dtype = element_dtype(parameter)
    if dtype is None:
        return raw
    lanes = tuple(value.item() for value in np.frombuffer(raw, dtype))
    return lanes if parameter.lanes > 1 else lanes[0]


def _variables(log: Log, text: str) -> dict[str, Array]:
    types = {v.bare_name: v.dtype for v in device_variables(lift(text, foreign=True)) if v.dtype}
    return {
        name: content.view(types.get(name, "u1"))
        if content.nbytes % np.dtype(types.get(name, "u1")).itemsize == 0
        else content
        for name, content in log.variables.items()
    }
