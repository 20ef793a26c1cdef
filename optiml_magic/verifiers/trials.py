"""Beyond the given inputs: other sizes, scales and signs, where the input kernel is right as well.

Small sizes, and the scales at one of them, cost next to nothing: every candidate runs them. What
costs as much as a verification itself, the scales at the given sizes and sizes near them, is kept
for a candidate that would win.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from optiml_magic.devices.base import Array, Buffer, Device, Job, Order, is_emulated
from optiml_magic.devices.compare import compare
from optiml_magic.errors import BindingError, RequirementError, UsageError
from optiml_magic.model.dtypes import numbers, part
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome, OutputCheck, Verdict
from optiml_magic.problem import Instance, Problem, sizes
from optiml_magic.problem.scales import (
    INTEGERS,
    SCALARS,
    SCALARS_TOO,
    SCALES,
    SPARSE,
    Scale,
    has_arrays,
    has_float_scalars,
    rescaled,
    scaled,
    times,
)
from optiml_magic.source.directives import LaunchDirective
from optiml_magic.verifiers import oracle
from optiml_magic.verifiers.branches import compared, dispatches, own, unreached
from optiml_magic.verifiers.compiled import Compiled, planned
from optiml_magic.verifiers.hazards import Inspector
from optiml_magic.verifiers.verify import blamed, fresh_poison, judge, verify

_SMALL = 1 << 28  # thread instructions of a launch at a small size
_WILD = 1 << 24  # where an integer may make a loop of any length
_SHOWN = 3  # sizes that a note names
_ORDERS: tuple[Order, ...] = ("forward", "reverse")
_FINAL = "final"  # the key that the large cases share, one at a time


@dataclass(frozen=True)
class _Condition:
    name: str
    draw: Callable[[], Mapping[str, Any]]
    orders: Sequence[Order] = ("forward",)  # in which the input kernel must be right


class Trials:
    """The further conditions of one problem on one device, learned on its input kernel."""

    def __init__(
        self,
        problem: Problem,
        device: Device,
        instructions: int,
        inspector: Inspector | None = None,
    ) -> None:
        """``inspector`` is asked who wrote what is wrong in a candidate that would win."""
        self._problem = problem
        self._device = device
        self._instructions = instructions
        self._inspector = inspector
        self._sizing = sizes.sizing(problem)
        self._arrays = [b.name for b in problem.interface.named("input", "inout")]
        self._root: Compiled | None = None
        self._finals: dict[str, Instance | None] = {}
        self._sides: dict[str, Instance | None] = {}  # of the conditions of dispatches, by sizes
        self._hung = False  # the input kernel did not come back: no more is asked of it
        self._sized: list[str] = []
        self._refused: list[str] = []
        self.small: tuple[Instance, ...] = ()

    @property
    def note(self) -> str:
        """Which other sizes were looked at, in a sentence."""
        if not self._sized:
            why = "the input kernel is right at none of them" if self._refused else "not checked"
            return f"other sizes: {why}"
        text = f"other sizes: {len(self._sized)} checked, {_few(self._sized)}"
        refused = f"; not asked for where the input kernel is wrong: {_few(self._refused)}"
        return text + (refused if self._refused else "")

    def learn(self, root: Compiled) -> None:
        """Find the small sizes, and the scales at one of them, that the input kernel gets right."""
        self._root, found = root, []
        self._sides.clear()
        self._sized, self._refused = [], []
        largest: tuple[int, str, Callable[[], Mapping[str, Any]]] | None = None
        seen: list[dict[str, int]] = []
        for given, seed in sizes.small(self._sizing.given) if self._sizing else ():
            assert self._sizing is not None
            if given in (*seen, dict(self._sizing.given)):
                continue
            seen.append(given)
            name, draw = sizes.spelled(given), partial(self._sizing.draw, given, seed)
            instance = self._learned(_Condition(name, draw), f"small-{len(seen)}")
            (self._refused if instance is None else self._sized).append(name)
            if instance is None:
                continue
            found.append(instance)
            elements = sum(buffer.array.size for buffer in instance.case.buffers)
            if largest is None or elements > largest[0]:
                largest = (elements, name, draw)
        if largest is not None:
            at = f"{largest[1]}, ", largest[2]
            for condition in (*self._scaled(*at), *self._other(*at)):
                instance = self._learned(condition, f"small-{condition.name}")
                found += [instance] if instance else []
        self.small = tuple(found)

    def plans(self, program: Compiled) -> tuple[list[tuple[Instance, LaunchPlan]], int]:
        """The launches on every small set of inputs, and how many the program's `require` skips."""
        return planned(program, self.small)

    def sides(
        self, program: Compiled, verified: Sequence[Instance]
    ) -> tuple[list[tuple[Instance, LaunchPlan]], tuple[str, ...]]:
        """The launches on inputs at both sides of what its dispatches ask, and notes on those.

        ``verified`` are inputs that it is verified on anyway. Raises BindingError where no inputs
        reach a launch, which then nobody can verify, unless it is the input kernel's own.
        """
        root, sizing = self._root, self._sizing
        if root is None or not dispatches(program.program):
            return [], ()
        found: list[tuple[Instance, LaunchPlan]] = []
        numbers = compared(program.program)
        if sizing is not None:
            near = [self._side(*chosen) for chosen in sizes.around(sizing.given, numbers)]
            found, _ = planned(program, [instance for instance in near if instance])
        ran = [program.ran(i) for i in (*verified, *(i for i, _ in found))]
        missing = unreached(program.program, ran)
        for chosen in sizes.near(sizing.given, numbers) if sizing is not None else ():
            if not missing or not self._leads_to(program, missing, *chosen):
                continue
            instance = self._side(*chosen)
            more, _ = planned(program, [instance] if instance else [])
            found += more
            ran += [program.ran(i) for i, _ in more]
            missing = unreached(program.program, ran)
        if not missing:
            return found, ()
        task = self._problem.task
        same = program.program, program.build, root.program, root.build, task.defines
        if not own(missing, *same):
            raise BindingError(
                "no sizes that were tried run this launch, so it could not be verified",
                fix="ask for less in its condition, or let the input kernel's own launch be it",
                line=missing[0].line,
            )
        names = " and ".join(f"the launch on line {launch.line}" for launch in missing)
        return found, (f"{names} ran at no sizes that were tried; it is the input kernel's own",)

    def _side(self, chosen: sizes.Sizes, seed: int) -> Instance | None:
        assert self._sizing is not None
        name = sizes.spelled(chosen)
        if name not in self._sides:
            condition = _Condition(name, partial(self._sizing.draw, chosen, seed))
            self._sides[name] = self._learned(condition, f"side-{len(self._sides)}")
        return self._sides[name]

    def _leads_to(
        self,
        program: Compiled,
        missing: Sequence[LaunchDirective],
        chosen: sizes.Sizes,
        seed: int,
    ) -> bool:
        """Whether one of these launches would run at these sizes."""
        assert self._sizing is not None
        try:
            values = self._sizing.draw(chosen, seed)
            shapes = {n: v.shape for n, v in values.items() if isinstance(v, np.ndarray)}
            ran = program.running(values, shapes)
        except Exception:  # noqa: BLE001  # the task's own code: it does not know such inputs
            return False
        return not {x.start for x in missing}.isdisjoint(x.start for x in ran)

    def scrutinise(self, program: Compiled, first: Instance) -> Verdict:
        """The verdict on a candidate that would win; its notes are facts beside it.

        ``first`` is the set of inputs that it is timed on, with its answer.
        """
        verdict = self._read_back(program, first)
        if not verdict.passed:
            return verdict
        for condition in self._large() if self._root else ():
            instance = self._final(condition)
            if instance is None:
                continue
            try:
                planned = program.plan(instance)
            except RequirementError:
                continue
            except UsageError as unfit:
                return Verdict(
                    Outcome.INVALID,
                    f"{unfit.message} (on {condition.name})",
                    line=unfit.line or 0,
                    fix=unfit.fix,
                )
            self._device.put(instance.case)
            found = verify(
                self._device,
                program.build,
                [(instance, planned)],
                instructions=self._instructions,
                inspector=self._inspector,
            )
            if not found.passed:
                return found
        return verdict

    def _large(self) -> Iterator[_Condition]:
        first = self._problem.first
        yield from self._scaled("", lambda: first.values)
        if self._sizing is not None:
            seen = [dict(self._sizing.given)]
            for given, seed in sizes.large(self._sizing.given):
                if given not in seen:
                    seen.append(given)
                    yield _Condition(sizes.spelled(given), partial(self._sizing.draw, given, seed))

    def _scaled(self, prefix: str, draw: Callable[[], Mapping[str, Any]]) -> Iterator[_Condition]:
        first, scalars = self._problem.first.values, self._problem.interface.scalars
        if has_float_scalars(first, scalars):
            yield _Condition(prefix + SCALARS, lambda: rescaled(draw(), scalars))
        if has_arrays(first, self._arrays):
            for name, scale in SCALES.items():
                yield self._condition(prefix + name, draw, scale)

    def _other(self, prefix: str, draw: Callable[[], Mapping[str, Any]]) -> Iterator[_Condition]:
        """What shows at a small size, if at all."""
        first, scalars = self._problem.first.values, self._problem.interface.scalars
        if has_arrays(first, self._arrays):
            for name, scale in SPARSE.items():
                yield self._condition(prefix + name, draw, scale)
            for name, (inputs, factor) in (
                SCALARS_TOO.items() if has_float_scalars(first, scalars) else ()
            ):
                other = partial(_rescaled, draw, scalars, factor)
                yield self._condition(prefix + name, other, times(inputs))
        # Integers may be addresses, which only the emulated device checks one by one. Equal ones
        # may be where several threads write: it must not matter who comes last.
        if is_emulated(self._device.name) and has_arrays(first, self._arrays, "iu"):
            for name, scale in INTEGERS.items():
                yield replace(self._condition(prefix + name, draw, scale, "iu"), orders=_ORDERS)

    def _condition(
        self, name: str, draw: Callable[[], Mapping[str, Any]], scale: Scale, kinds: str = "fc"
    ) -> _Condition:
        return _Condition(name, lambda: scaled(draw(), self._arrays, scale, kinds))

    def _final(self, condition: _Condition) -> Instance | None:
        if condition.name not in self._finals and not self._hung:
            self._finals[condition.name] = self._learned(condition, _FINAL)
        return self._finals.get(condition.name)

    def _learned(self, condition: _Condition, key: str) -> Instance | None:
        """The set of inputs with its answer, if the input kernel has that answer as well."""
        root = self._root
        assert root is not None
        small = _WILD if len(condition.orders) > 1 else _SMALL
        budget = self._instructions if key == _FINAL else min(self._instructions, small)
        if self._hung:
            return None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of a reference outside of its domain
            try:
                instance = self._problem.instance(condition.draw(), condition.name, key)
                planned = root.plan(instance)
            except Exception:  # noqa: BLE001  # the task's own code: it does not know such inputs
                return None
        self._device.put(instance.case)
        if self._problem.task.reference is None:
            return self._answered(root, condition, instance, planned, budget)
        verdict = verify(self._device, root.build, [(instance, planned)], instructions=budget)
        self._hung = verdict.outcome in (Outcome.TIMEOUT, Outcome.CRASHED)
        return instance if verdict.passed and self._in_order(condition, instance, planned) else None

    def _in_order(self, condition: _Condition, instance: Instance, planned: LaunchPlan) -> bool:
        """Whether the input kernel is right in the further orders of its blocks as well."""
        assert self._root is not None
        for order in condition.orders[1:]:
            job = Job(instance.case.key, planned, fresh_poison(), False, _WILD, order)
            found = self._device.execute(self._root.build, job)
            if not judge(found, instance.condition).passed:
                return False
        return True

    def _answered(
        self,
        root: Compiled,
        condition: _Condition,
        instance: Instance,
        planned: LaunchPlan,
        budget: int,
    ) -> Instance | None:
        task = self._problem.task
        try:
            found = oracle.answered(
                self._device,
                root.build,
                [(instance, planned)],
                instructions=budget,
                rtol=task.rtol,
                atol=task.atol,
            )
        except UsageError:
            return None
        if isinstance(found, Verdict):
            self._hung = found.outcome in (Outcome.TIMEOUT, Outcome.CRASHED)
            return None
        self._device.put(found[0].case)
        return found[0] if self._in_order(condition, found[0], planned) else None

    def _read_back(self, program: Compiled, instance: Instance) -> Verdict:
        """Two runs of a case, compared once more in this process and with one another."""
        case, plan, readings = instance.case, program.plan(instance), []
        checks: tuple[OutputCheck, ...] = ()
        for order in _ORDERS:
            job = Job(case.key, plan, fresh_poison(), False, self._instructions, order)
            execution = self._device.execute(program.build, job)
            verdict = judge(execution, instance.condition)
            if not verdict.passed:
                where = instance.condition
                return blamed(verdict, self._inspector, program.build, job, where)
            written = [b for b in case.buffers if b.role != "input"]
            readings.append({b.name: self._device.read(case.key, b.name) for b in written})
            checks = tuple(_checked(b, readings[-1][b.name]) for b in written if _is_wanted(b))
            for check in checks:
                if not check.passed:
                    return Verdict(
                        Outcome.WRONG,
                        f"`{check.name}` was right on the device, and read back it is not",
                        checks=checks,
                    )
        differing = [n for n in readings[0] if not same_bits(readings[0][n], readings[1][n])]
        notes = [f"`{name}` is not bitwise reproducible from run to run" for name in differing]
        return Verdict(Outcome.PASSED, "", checks=checks, notes=tuple(notes))


def _rescaled(
    draw: Callable[[], Mapping[str, Any]], scalars: Collection[str], factor: float
) -> dict[str, Any]:
    return rescaled(draw(), scalars, factor)


def _few(names: Sequence[str]) -> str:
    """Those in the middle, which are neither trivial nor round."""
    start = max(0, len(names) // 2 - _SHOWN // 2)
    more = ", ..." if len(names) > _SHOWN else ""
    return "; ".join(names[start : start + _SHOWN]) + more


def _is_wanted(buffer: Buffer) -> bool:
    return buffer.expected is not None and buffer.tolerance is not None


def _checked(buffer: Buffer, got: Array) -> OutputCheck:
    assert buffer.tolerance is not None
    return compare(buffer.name, got, buffer.expected, buffer.tolerance, None)


def same_bits(one: Array, two: Array) -> bool:
    """Number by number: the padding of a struct is nothing."""
    pairs = ((part(one, number), part(two, number)) for number in numbers(one.dtype))
    return all(np.array_equal(a.view(np.uint8), b.view(np.uint8)) for a, b in pairs)
