"""When two programs are one: the same machine code, launched alike at whatever sizes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from optiml_magic.errors import UsageError
from optiml_magic.model.codec import to_json
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.problem import Problem
from optiml_magic.source.program import Program
from optiml_magic.verifiers.branches import dispatches
from optiml_magic.verifiers.compiled import Compiled

_PROBES = 3  # numbers at which launches are compared


def identity(problem: Problem, compiled: Compiled, plans: Sequence[LaunchPlan]) -> str:
    """Two texts with one identity are one evaluation; ``plans`` are those that it runs."""
    launches = (to_json(LaunchPlan, plan) for plan in plans)
    build = compiled.build
    # Of one machine code, the text alone may tell a return from a way around a barrier.
    leaves = f"early returns: {len(build.early_returns)}"
    parts = [build.digest, leaves, *_conditional(compiled.program), *launches]
    parts += _elsewhere(problem, compiled)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def _conditional(program: Program) -> Iterator[str]:
    """What the sizes at hand need not show: launches beside those that run, and requirements."""
    read: set[str] = set()
    for step in dispatches(program):
        yield from map(str, step)
        read |= {name for launch in step for name in launch.names}
    for requirement in program.requires:
        yield str(requirement)
        read |= requirement.condition.names
    yield from (f"{name} = {value}" for name, value in program.values.items() if name in read)


def _elsewhere(problem: Problem, compiled: Compiled) -> Iterator[str]:
    """The launches at other numbers: those of two programs may differ there alone."""
    rng, first = np.random.default_rng(0), problem.instances[0]
    integers = [n for n in problem.interface.scalars if _is_integer(first.values.get(n))]
    for _ in range(_PROBES):
        other = {name: int(rng.integers(129, 999)) for name in integers}
        try:
            plan = compiled.plan(replace(first, values={**first.values, **other}))
        except UsageError as unfit:
            yield unfit.message
        else:
            yield to_json(LaunchPlan, plan)


def _is_integer(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, np.integer) and value.itemsize >= 2)
