"""Which further conditions a task can be asked at: those that its input kernel gets right."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np

from optiml_magic.devices.base import Buffer, Device, Job, Tolerance, is_emulated
from optiml_magic.errors import UsageError
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import Instance, Problem
from optiml_magic.problem.limited import OutOfTime, limited
from optiml_magic.verifiers import oracle
from optiml_magic.verifiers.compiled import Compiled
from optiml_magic.verifiers.conditions import Condition
from optiml_magic.verifiers.verify import fresh_poison, judge, verify

_SMALL = 1 << 28  # thread instructions of a launch at a small size
_WILD = 1 << 24  # where an integer may make a loop of any length
_PATIENCE, _SLOWER = 4.0, 10.0  # seconds, and times the slowest answer so far; ours
_NEAR = 0.25  # of what is allowed, which rounding alone may turn into all of it; ours
_LONG = 3  # trials that it takes too long for, after which there are no more: ours
_NO_MORE = "the input kernel is not tried any more"
_ASKED = ("the reference ", "inputs(")  # how a message about what the task gives begins
FINAL = "final"  # what the keys of large cases begin with


@dataclass(frozen=True)
class Drawn:
    """A set of inputs with the launches of the input kernel there."""

    instance: Instance
    plan: LaunchPlan


class Learner:
    """Tries the input kernel of one problem on one device; it is ``root``, set before."""

    def __init__(self, problem: Problem, device: Device, instructions: int) -> None:
        self._problem = problem
        self._device = device
        self._instructions = instructions
        self._hung = False  # the input kernel did not come back: no more is asked of it
        self._long = 0  # how often it had more to do than is tried, which a device counts
        self.root: Compiled | None = None
        self.unanswered: dict[str, str] = {}  # by condition: why there is no answer

    def learned(self, condition: Condition, key: str) -> Instance | None:
        """The set of inputs with its answer, if the input kernel has that answer as well."""
        drawn = self.drawn(condition, key)
        return self.tried(condition, drawn) if drawn is not None else None

    def drawn(self, condition: Condition, key: str) -> Drawn | None:
        """The inputs and what the reference wants there; it needs no device."""
        root = self.root
        assert root is not None
        if self._hung:
            self.unanswered[condition.name] = _NO_MORE
            return None
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # of a reference outside of its domain
            asked = "the inputs take"
            try:
                with limited(self._patience):
                    values, asked = condition.draw(), "the reference takes"
                    instance = self._problem.instance(values, condition.name, key, condition.maps)
                return Drawn(instance, root.plan(instance))
            except OutOfTime:
                self.unanswered[condition.name] = f"{asked} longer than {self._patience:.2g} s"
                return None
            except UsageError as error:
                if error.message.startswith(_ASKED):
                    self.unanswered[condition.name] = error.message
                return None
            except Exception:  # noqa: BLE001  # the task's own code: it does not know such inputs
                return None

    @property
    def _patience(self) -> float:
        """Seconds for the inputs and the answer of one condition."""
        references = self._problem.references
        return _PATIENCE + _SLOWER * (references.seconds if references else 0.0)

    def tried(self, condition: Condition, drawn: Drawn) -> Instance | None:
        """The set of inputs, if the input kernel is right there; it is on the device then."""
        root, instance, planned = self.root, drawn.instance, drawn.plan
        assert root is not None
        if self._hung:
            self.unanswered[condition.name] = _NO_MORE
            return None
        small = _WILD if len(condition.orders) > 1 else _SMALL
        large = instance.case.key.startswith(FINAL)
        budget = self._instructions if large else min(self._instructions, small)
        self._device.put(instance.case)
        if self._problem.task.reference is None:
            return self._answered(root, condition, instance, planned, budget)
        verdict = verify(self._device, root.build, [(instance, planned)], instructions=budget)
        self._ended(verdict.outcome, condition)
        if not verdict.passed or not self._in_order(condition, instance, planned):
            return None
        return self._with_room(instance, verdict)

    def _ended(self, outcome: Outcome, condition: Condition) -> None:
        """Whether the input kernel may be asked again: not if it hangs, or crashes its device.

        One that only has more to do than is tried of it may, a few times.
        """
        counted = outcome is Outcome.TIMEOUT and is_emulated(self._device.name)
        if counted:
            self._long += 1
            self.unanswered[condition.name] = "the input kernel takes longer than is tried"
        hangs = outcome is Outcome.TIMEOUT and (not counted or self._long >= _LONG)
        self._hung = hangs or outcome is Outcome.CRASHED

    def _with_room(self, instance: Instance, verdict: Verdict) -> Instance:
        """Inputs at which the input kernel is off by much of what is allowed allow more.

        Terms of mixed magnitudes cancel, and what is left has the rounding of the largest: a right
        program that adds in another order is off by as much, in the one direction or the other.
        """
        task, share = self._problem.task, max((c.share for c in verdict.checks), default=0.0)
        if task.rtol is not None or task.atol is not None or share <= _NEAR:
            return instance
        buffers = tuple(_wider(b, share / _NEAR) for b in instance.case.buffers)
        wider = replace(instance, case=replace(instance.case, buffers=buffers))
        self._device.put(wider.case)
        return wider

    def _in_order(self, condition: Condition, instance: Instance, planned: LaunchPlan) -> bool:
        """Whether the input kernel is right in the further orders of its blocks as well.

        Threads that write where others do may come in the right order by luck: lanes of one warp
        keep theirs whichever block is first.
        """
        assert self.root is not None
        for order in condition.orders[1:]:
            job = Job(instance.case.key, planned, fresh_poison(), False, _WILD, order, checks=True)
            found = self._device.execute(self.root.build, job)
            races = any(h.kind == "race" and h.severity == "error" for h in found.hazards)
            if races or not judge(found, instance.condition).passed:
                return False
        return True

    def _answered(
        self,
        root: Compiled,
        condition: Condition,
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
            self._ended(found.outcome, condition)
            return None
        self._device.put(found[0].case)
        if not self._repeats(root, found[0], planned, budget):
            return None
        return found[0] if self._in_order(condition, found[0], planned) else None

    def _repeats(
        self, root: Compiled, instance: Instance, planned: LaunchPlan, budget: int
    ) -> bool:
        """Whether the input kernel has its own answers again, where other bytes lie around arrays.

        A card lets it read beyond its arrays, and what lies there was the same in both runs before.
        """
        if is_emulated(self._device.name):
            return True
        verdict = verify(self._device, root.build, [(instance, planned)], instructions=budget)
        return verdict.passed


def _wider(buffer: Buffer, times: float) -> Buffer:
    """A buffer that may be off by so many times as much."""
    if buffer.tolerance is None:
        return buffer
    return replace(buffer, tolerance=_scaled(buffer.tolerance, times))


def _scaled(limit: Tolerance, times: float) -> Tolerance:
    fields = tuple(_scaled(one, times) for one in limit.fields)
    return Tolerance(limit.rtol * times, limit.atol * times, fields)
