"""Beyond the given inputs: other sizes, scales and signs, where the input kernel is right as well.

Small sizes, and the scales at one of them, cost next to nothing: every candidate runs them. What
costs as much as a verification itself, the scales at the given sizes and sizes near them, is kept
for a candidate that would win.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace

from optiml_magic.devices.base import Device
from optiml_magic.errors import RequirementError, UsageError
from optiml_magic.model.launch import LaunchPlan
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import Instance, Problem
from optiml_magic.problem.cost import SLOW
from optiml_magic.problem.sizes import spelled
from optiml_magic.verifiers.compiled import Compiled, planned
from optiml_magic.verifiers.conditions import (
    FLOOR_LARGE,
    FLOOR_SCALES,
    FLOOR_SIZES,
    Condition,
    Conditions,
)
from optiml_magic.verifiers.hazards import Inspector
from optiml_magic.verifiers.learning import FINAL, Drawn, Learner
from optiml_magic.verifiers.purse import Purse
from optiml_magic.verifiers.readback import read_back
from optiml_magic.verifiers.sides import Sides
from optiml_magic.verifiers.verify import verify

_SHOWN = 3  # sizes that a note names
_HALF_SEED = 2000  # of the inputs at half the sizes
_AHEAD = 4 << 30  # bytes of large sets of inputs that are drawn before they are needed; ours


class Trials:
    """The further conditions of one problem on one device, learned on its input kernel."""

    def __init__(
        self,
        problem: Problem,
        device: Device,
        instructions: int,
        inspector: Inspector | None = None,
        seconds: float = math.inf,
        room: int = 0,
    ) -> None:
        """``inspector`` is asked who wrote what is wrong in a candidate that would win.

        About so many ``seconds`` may be spent on learning, on the sides of a program's dispatches,
        and on scrutinising the first candidate: what does not fit is left out for all. Large sets
        of inputs stay on the device, up to ``room`` bytes; the others take turns there.
        """
        self._problem = problem
        self._device = device
        self._instructions = instructions
        self._inspector = inspector
        self._seconds = seconds
        self._conditions = Conditions(problem, device.name)
        self._learner = Learner(problem, device, instructions)
        self._sides = Sides(problem, self._conditions, self._learner.learned, seconds)
        self._large: list[Condition] = []
        self._finals: dict[str, Drawn | None] = {}
        self._right: dict[str, bool] = {}  # whether the input kernel is, where that matters
        self._drawn: dict[str, Drawn | None] = {}  # those to come
        self._ahead = 0  # bytes of what was drawn before it was needed
        self._room = room
        self._sized: list[str] = []
        self._refused: list[str] = []
        self._left_out = ""
        self.small: tuple[Instance, ...] = ()

    @property
    def notes(self) -> tuple[str, ...]:
        """Which other sizes were looked at, and what was left out, each in a sentence."""
        return (self._about_sizes, *([self._left_out] if self._left_out else []))

    @property
    def _about_sizes(self) -> str:
        unanswered = self._learner.unanswered
        failed = [name for name in self._refused if name in unanswered]
        differing = [name for name in self._refused if name not in unanswered]
        found = [
            f"{len(self._sized)} checked, {_few(self._sized)}" if self._sized else "not checked"
        ]
        if failed:
            found.append(f"at {failed[0]} {unanswered[failed[0]]}")
        if differing:
            beside = "fails or differs from the reference" if self._problem.references else "fails"
            found.append(f"the input kernel {beside} at {_few(differing)}")
        return f"other sizes: {'; '.join(found)}"

    def learn(self, root: Compiled, seconds: float = 0.0) -> None:
        """Find the small sizes, and the scales at one of them, that the input kernel gets right.

        ``seconds`` is what one run of it takes at the given sizes, where a clock tells.
        """
        self._learner.root = root
        self._sides.clear()
        self._drawn.clear()
        small = self._conditions.small()
        sized = self._tried(small, FLOOR_SIZES, lambda c: f"small-{c.place}")
        right = [c.name for c, instance in sized if instance is not None]
        self._sized, self._refused = right, [c.name for c, _ in sized if c.name not in right]
        found = [(c, instance) for c, instance in sized if instance is not None]
        scales: list[Condition] = []
        scaled: list[tuple[Condition, Instance | None]] = []
        if found:
            largest, _ = max(found, key=lambda one: _elements(one[1]))
            scales = self._conditions.at_small(largest)
            scaled = self._tried(scales, FLOOR_SCALES, lambda c: f"small-{c.name}")
        self.small = (*(i for _, i in found), *(i for _, i in scaled if i is not None))
        fit = self._affordable(seconds)
        large = [c for c in self._conditions.large() if c.work == 1 or c.work <= fit / 4]
        self._large = large[:fit]
        tried, every = len(sized) + len(scaled), len(small) + len(scales)
        if tried < every or len(self._large) < len(large):
            made = f"{tried + len(self._large)} of {every + len(large)}"
            self._left_out = f"trials: {made}, {self._why(seconds)}"

    def _affordable(self, seconds: float) -> int:
        """How many of the large conditions fit, by what is known of their cost before.

        A candidate that would win is no slower than the input kernel, which runs twice where its
        are the answers.
        """
        runs = 1 if self._problem.references else 3
        each = self._reference_seconds + runs * seconds
        fit = self._seconds / each if each else math.inf
        return sys.maxsize if fit == math.inf else max(FLOOR_LARGE, int(fit))

    def _why(self, seconds: float) -> str:
        """What makes a trial slow."""
        reference = self._reference_seconds
        if max(reference, seconds) * len(self._large) < self._seconds / 4:
            return f"more would take longer than {self._seconds:.3g} s"
        what = ("reference", reference) if reference >= seconds else ("input kernel", seconds)
        return f"the {what[0]} takes {what[1]:.2g} s"

    @property
    def _reference_seconds(self) -> float:
        references = self._problem.references
        return references.seconds if references else 0.0

    def _tried(
        self, conditions: Sequence[Condition], floor: int, key: Callable[[Condition], str]
    ) -> list[tuple[Condition, Instance | None]]:
        """What was learned of each that there was time for, in the order of their places."""
        purse = Purse(self._seconds / 2)
        found = []
        for at, condition in enumerate(conditions):
            if at >= floor and not purse.affords:
                break
            found.append((condition, self._learner.learned(condition, key(condition))))
            purse.paid()
        return sorted(found, key=lambda one: one[0].place)

    def plans(self, program: Compiled) -> tuple[list[tuple[Instance, LaunchPlan]], int]:
        """The launches on every small set of inputs, and how many the program's `require` skips."""
        return planned(program, self.small)

    def elsewhere(self) -> Instance | None:
        """A set of inputs at half the sizes, where the input kernel is right there as well.

        Half of those that the task is measured at: where it is verified at smaller ones, nothing
        is compared there either.
        """
        sizing = self._conditions.sizing
        if sizing is None or self._learner.root is None:
            return None
        half = {name: max(1, size // 2) for name, size in sizing.own.items()}
        if half == dict(sizing.own):
            return None
        if not self._problem.verified:
            slow = self._reference_seconds > self._seconds / 4
            side = self._conditions.side(half, _HALF_SEED)
            return None if slow else self._learner.learned(side, FINAL)
        try:
            values = sizing.draw(half, _HALF_SEED)
            instance = self._problem.unverified(values, sizing, spelled(half))
        except Exception:  # noqa: BLE001  # the task's own code may not know these sizes
            return None
        self._device.put(instance.case)
        return instance

    def sides(
        self, program: Compiled, verified: Sequence[Instance]
    ) -> tuple[list[tuple[Instance, LaunchPlan]], tuple[str, ...]]:
        """What ``Sides.of`` finds; nothing before an input kernel was learned."""
        root = self._learner.root
        return self._sides.of(root, program, verified) if root else ([], ())

    def scrutinise(self, program: Compiled, first: Instance) -> Verdict:
        """The verdict on a candidate that would win; its notes are facts beside it.

        ``first`` is the set of inputs that it is timed on, with its answer.
        """
        purse = Purse(self._seconds)
        verdict = read_back(
            self._device,
            program,
            first,
            self._instructions,
            self._inspector,
            self._problem.references,
        )
        if not verdict.passed:
            return verdict
        purse.paid()
        for at, condition in enumerate(self._large):
            new = condition.name not in self._finals
            if at >= FLOOR_LARGE and new and not purse.affords:
                told = f"trials at full size: {at} of {len(self._large)}, for all candidates"
                self._large = self._large[:at]
                more = f"{told}; more would take longer than {self._seconds:.3g} s"
                verdict = replace(verdict, notes=(*verdict.notes, more))
                break
            found = self._trial(program, condition)
            purse.paid()
            if found is not None and not found.passed:
                return found
        return verdict

    def _trial(self, program: Compiled, condition: Condition) -> Verdict | None:
        """The verdict on one large condition; None where it is not asked of the program.

        Whether the input kernel is right there, and how far it is off, matters only where the
        program is not.
        """
        drawn = self._final(condition)
        if drawn is None:
            return None
        found = self._tried_on(program, condition, drawn.instance)
        if found is None or found.passed:
            return found
        if not self._is_right(condition, drawn):
            return None
        answered = self._finals[condition.name]
        if answered is None or answered.instance is drawn.instance:
            return found
        return self._tried_on(program, condition, answered.instance)

    def _tried_on(
        self, program: Compiled, condition: Condition, instance: Instance
    ) -> Verdict | None:
        try:
            plan = program.plan(instance)
        except RequirementError:
            return None
        except UsageError as unfit:
            summary = f"{unfit.message} (on {condition.name})"
            return Verdict(Outcome.INVALID, summary, line=unfit.line or 0, fix=unfit.fix)
        self._device.put(instance.case)
        return verify(
            self._device,
            program.build,
            [(instance, plan)],
            instructions=self._instructions,
            inspector=self._inspector,
        )

    def _final(self, condition: Condition) -> Drawn | None:
        """The set of inputs of a large condition, with its answer; None where there is none."""
        name = condition.name
        if name not in self._finals:
            known = name in self._drawn
            drawn = self._drawn.pop(name) if known else self._learner.drawn(condition, FINAL)
            if drawn is not None and (size := _nbytes(drawn.instance)) <= self._room:
                self._room -= size
                case = replace(drawn.instance.case, key=f"{FINAL}-{len(self._finals)}")
                drawn = replace(drawn, instance=replace(drawn.instance, case=case))
            if drawn is not None and self._problem.references is None:  # then it has the answers
                answered = self._learner.tried(condition, drawn)
                drawn = replace(drawn, instance=answered) if answered else None
                self._right[name] = True
            self._finals[name] = drawn
        return self._finals[name]

    def _is_right(self, condition: Condition, drawn: Drawn) -> bool:
        """Whether the input kernel is right on a set of inputs; it is asked once."""
        if condition.name not in self._right:
            instance = self._learner.tried(condition, drawn)
            self._right[condition.name] = instance is not None
            answered = replace(drawn, instance=instance) if instance is not None else None
            self._finals[condition.name] = answered
        return self._right[condition.name]

    def ahead(self) -> bool:
        """Draw the inputs of one more large condition, while the device has other things to do.

        Whether there may be another. A reference that is slow, or that needs the card itself, is
        asked only when its answer is needed.
        """
        references = self._problem.references
        slow = references is None or references.is_on_card or references.seconds > SLOW
        if slow or not self._room or self._ahead > _AHEAD or self._learner.root is None:
            return False
        known = (self._finals, self._drawn)
        for condition in self._large:
            if not any(condition.name in those for those in known):
                drawn = self._drawn[condition.name] = self._learner.drawn(condition, FINAL)
                self._ahead += _nbytes(drawn.instance) if drawn is not None else 0
                return True
        return False


def _nbytes(instance: Instance) -> int:
    """Of a set of inputs on a card: each array twice, and what is wanted."""
    return sum(
        2 * b.array.nbytes + (0 if b.expected is None else b.expected.nbytes)
        for b in instance.case.buffers
    )


def _elements(instance: Instance) -> int:
    return sum(buffer.array.size for buffer in instance.case.buffers)


def _few(names: Sequence[str]) -> str:
    """Those in the middle, which are neither trivial nor round."""
    start = max(0, len(names) // 2 - _SHOWN // 2)
    more = ", ..." if len(names) > _SHOWN else ""
    return "; ".join(names[start : start + _SHOWN]) + more
