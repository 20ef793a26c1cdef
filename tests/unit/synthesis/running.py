"""A reference lowered, and its kernels run on the emulated device with every check on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from optiml_magic.chips import chip
from optiml_magic.compilers.base import CompileOptions
from optiml_magic.compilers.cached import CachedCompiler
from optiml_magic.compilers.nvrtc import NvrtcCompiler
from optiml_magic.devices.base import Job
from optiml_magic.devices.emulated import EmulatedDevice
from optiml_magic.errors import RequirementError, UsageError
from optiml_magic.from_reference import with_kernel
from optiml_magic.model.build import CompileFailure
from optiml_magic.model.task import Task
from optiml_magic.preparation import compiled
from optiml_magic.problem import prepare
from optiml_magic.settings import resolve
from optiml_magic.source.program import parse_program

_CHIP = chip("h200")
_INSTRUCTIONS = 50_000_000
Sizes = Mapping[str, int]
Inputs = Callable[..., dict[str, Any]]


@cache
def _compiler() -> CachedCompiler:
    return CachedCompiler(NvrtcCompiler(), resolve().compiled)


@cache
def _device() -> EmulatedDevice:
    return EmulatedDevice("h200")


def run(
    reference: Callable[..., Any], inputs: Inputs, sizes: Sequence[Sizes], *, loose: float = 1e-4
) -> str:
    """The program made at the first sizes, once it gave what the reference gives at all of them.

    Sizes that the program itself requires not to be are left out. Raises AssertionError otherwise.
    """
    made = with_kernel(Task(reference=reference, inputs=inputs, sizes=sizes[0]))
    text = str(made.kernel)
    for at in sizes:
        task = Task(text, reference=reference, inputs=inputs, sizes=at, outputs=made.outputs)
        try:
            got = _outputs(task)
        except RequirementError:
            assert at is not sizes[0], text
            continue
        answer = _answered(reference, inputs(np.random.default_rng(0), **at) | dict(at))
        for (name, mine), wanted in zip(got.items(), answer, strict=True):
            assert mine.dtype == wanted.dtype, (name, mine.dtype, wanted.dtype, text)
            assert mine.shape == wanted.shape, (name, mine.shape, wanted.shape, text)
            _close(mine, wanted, loose, text)
    return text


def _outputs(task: Task) -> dict[str, Any]:
    problem, device = prepare(task, seeds=1), _device()
    program = parse_program(problem.program.text)
    bound = compiled(program, problem.interface, _compiler(), CompileOptions(), _CHIP)
    if isinstance(bound, CompileFailure):
        raise AssertionError(f"{bound.errors[0]}\n{task.kernel}")  # noqa: TRY004
    if isinstance(bound, UsageError):
        raise bound
    first = problem.first
    plan = bound.plan(first.values, first.shapes)
    device.put(first.case)
    for order in ("forward", "reverse"):
        job = Job(first.case.key, plan, 7, False, _INSTRUCTIONS, order, checks=True)
        ran = device.execute(bound.build, job)
        assert ran.fault is None, (ran.fault, task.kernel)
        errors = [h for h in ran.hazards if h.severity == "error"]
        assert not errors, (errors, task.kernel)
        assert not ran.modified_inputs, (ran.modified_inputs, task.kernel)
    written = [b.name for b in problem.interface.named("output", "inout")]
    return {name: device.read(first.case.key, name) for name in written}


def _answered(reference: Callable[..., Any], values: Mapping[str, Any]) -> list[Any]:
    """What the reference gives on the dtypes that it is given."""
    code = reference.__code__
    asked = {n: np.copy(values[n]) if np.ndim(values[n]) else values[n]
             for n in code.co_varnames[: code.co_argcount]}  # fmt: skip
    with np.errstate(all="ignore"):
        answer = reference(**asked)
    several = answer if isinstance(answer, tuple) else (answer,)
    return [np.asarray(one) for one in several]


def _close(mine: Any, wanted: Any, loose: float, text: str) -> None:
    if wanted.dtype.kind not in "fV":
        np.testing.assert_array_equal(mine, wanted, text)
        return
    finite = wanted[np.isfinite(wanted)]
    largest = max(1.0, float(abs(finite.astype(float)).max(initial=0.0)))
    np.testing.assert_allclose(
        mine.astype(float), wanted.astype(float), loose, loose * largest, err_msg=text
    )
