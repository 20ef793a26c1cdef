"""A candidate that compiled, and its launches on sets of inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from optiml_magic.errors import RequirementError, UsageError
from optiml_magic.model.build import Build
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.problem import Instance
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.source.program import Program

Values = Mapping[str, Any]
Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Compiled:
    """A compiled program and the launches that it makes of a set of inputs.

    ``plan`` raises UsageError where it does not fit, and ``running``, which has the directive
    behind each launch of a plan, where its conditions cannot be evaluated. ``launching`` is the
    same code under other launches of its kernels.
    """

    program: Program
    build: Build
    plan: Callable[[Instance], LaunchPlan]
    running: Callable[[Values, Shapes], tuple[LaunchDirective, ...]]
    launching: Callable[[Program], Compiled]

    def ran(self, instance: Instance) -> tuple[LaunchDirective, ...]:
        """The directive behind each launch on these inputs."""
        return self.running(instance.values, instance.shapes)


def planned(
    program: Compiled, instances: Sequence[Instance]
) -> tuple[list[tuple[Instance, LaunchPlan]], int]:
    """The launches on each set of inputs, and how many sets the program's `require` skips."""
    found, skipped = [], 0
    for instance in instances:
        try:
            found.append((instance, program.plan(instance)))
        except RequirementError:
            skipped += 1
        except UsageError as unfit:
            raise type(unfit)(
                f"{unfit.message} (on {instance.condition})", fix=unfit.fix, line=unfit.line
            ) from None
    return found, skipped
