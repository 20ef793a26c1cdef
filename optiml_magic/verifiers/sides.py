"""Inputs at both sides of what the dispatches of a program ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from optiml_magic.errors import BindingError
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.problem import Instance, Problem, sizes
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.verifiers.branches import (
    compared,
    conditional,
    dispatches,
    fixed,
    forced,
    own,
    unreached,
)
from optiml_magic.verifiers.compiled import Compiled, planned
from optiml_magic.verifiers.conditions import Condition, Conditions
from optiml_magic.verifiers.purse import Purse

Learned = Callable[[Condition, str], Instance | None]
_FLOOR = 4  # sets of inputs that are tried however long it takes


class Sides:
    """The sides of one problem, each learned once; ``learned`` asks the input kernel."""

    def __init__(
        self, problem: Problem, conditions: Conditions, learned: Learned, seconds: float
    ) -> None:
        """``seconds`` may be spent on one program; what is left out then is told."""
        self._problem = problem
        self._conditions = conditions
        self._learned = learned
        self._seconds = seconds
        self._found: dict[str, Instance | None] = {}  # by sizes
        self._drawn: dict[str, tuple[dict[str, Any], dict[str, tuple[int, ...]]]] = {}

    def clear(self) -> None:
        """Forget what another input kernel got right."""
        self._found.clear()

    def of(
        self, root: Compiled, program: Compiled, verified: Sequence[Instance]
    ) -> tuple[list[tuple[Instance, LaunchPlan]], tuple[str, ...]]:
        """The launches on inputs at both sides of what it asks of sizes, and notes on those.

        Its dispatches ask, and its code where that compares a size with a number.

        ``root`` is the input kernel, ``verified`` are inputs that it is verified on anyway. Raises
        BindingError where no inputs reach a launch with a condition, which then nobody can verify,
        unless it is the input kernel's own. One without is run in place of those before it.
        """
        sizing, purse = self._conditions.sizing, Purse(self._seconds)
        own_sizes: sizes.Sizes = {} if sizing is None else sizing.own
        inside = fixed(program.program, root.program, own_sizes)
        if not dispatches(program.program) and not inside:
            return [], ()
        given: sizes.Sizes = {} if sizing is None else sizing.given
        numbers = compared(program.program) if given else ()
        read = conditional(program.program) | inside
        asked = {name: size for name, size in own_sizes.items() if name in read}
        around = list(sizes.around(given, numbers, asked))
        tried: list[Instance | None] = []
        for at, chosen in enumerate(around):
            if at >= _FLOOR and not purse.affords:
                break
            tried.append(self._side(*chosen))
            purse.paid()
        found, _ = planned(program, [instance for instance in tried if instance])
        ran = [program.ran(i) for i in (*verified, *(i for i, _ in found))]
        missing = unreached(program.program, ran)
        for chosen in (*sizes.measured(given, own_sizes, asked), *sizes.near(given, numbers)):
            if not given or not missing or not purse.affords:
                break
            if not self._leads_to(program, missing, *chosen):
                continue
            purse.paid()
            instance = self._side(*chosen)
            more, _ = planned(program, [instance] if instance else [])
            found += more
            ran += [program.ran(i) for i, _ in more]
            missing = unreached(program.program, ran)
        fewer = f"sides of its dispatches: {len(tried)} of {len(around)} sets of inputs, for time"
        notes = (fewer,) if len(tried) < len(around) else ()
        if not missing:
            return found, notes
        task = self._problem.task
        same = program.program, program.build, root.program, root.build, task.defines
        where = "ran at no sizes that were tried; it is the input kernel's own"
        if not own(missing, *same):
            other, known = forced(missing, program.program), own(missing, *same, whole=False)
            if other is None or not (known or all(x.condition is None for x in missing)):
                raise _unverified(missing[0])
            # What stands beside it is new there: it must not rely on the launch that ran instead.
            # One that asks for nothing must be right at all sizes, whoever wrote it.
            found += planned(program.launching(other), verified)[0]
            where = where if known else where.partition(";")[0]
            where += ", and was run in place of the other"
        names = " and ".join(f"the launch on line {launch.line}" for launch in missing)
        return found, (*notes, f"{names} {where}")

    def _side(self, chosen: sizes.Sizes, seed: int) -> Instance | None:
        name = sizes.spelled(chosen)
        if name not in self._found:
            condition = self._conditions.side(chosen, seed)
            self._found[name] = self._learned(condition, f"side-{len(self._found)}")
        return self._found[name]

    def _leads_to(
        self,
        program: Compiled,
        missing: Sequence[LaunchDirective],
        chosen: sizes.Sizes,
        seed: int,
    ) -> bool:
        """Whether one of these launches would run at these sizes."""
        sizing, name = self._conditions.sizing, sizes.spelled(chosen)
        assert sizing is not None
        try:
            if name not in self._drawn:
                values = sizing.draw(chosen, seed, contents=False)
                shapes = {n: v.shape for n, v in values.items() if isinstance(v, np.ndarray)}
                scalars = {n: v for n, v in values.items() if n not in shapes}
                self._drawn[name] = scalars, shapes
            ran = program.running(*self._drawn[name])
        except Exception:  # noqa: BLE001  # the task's own code: it does not know such inputs
            return False
        return not {x.start for x in missing}.isdisjoint(x.start for x in ran)


def _unverified(launch: LaunchDirective) -> BindingError:
    return BindingError(
        "no sizes that were tried run this launch, so it could not be verified",
        fix="ask for less in its condition, or let the input kernel's own launch be it",
        line=launch.line,
    )
