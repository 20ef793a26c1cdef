"""What a candidate has to stand that would be the fastest so far: trials at full size, physics."""

from __future__ import annotations

import math

from optiml_magic.chips import Chip
from optiml_magic.devices.base import Device, is_emulated
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.verdict import Outcome, Verdict
from optiml_magic.problem import Instance, Problem
from optiml_magic.verifiers.compiled import Compiled
from optiml_magic.verifiers.hazards import Inspector
from optiml_magic.verifiers.physics import Physics
from optiml_magic.verifiers.trials import Trials

_SHARE = 8  # of a card's memory, one part is for the large sets of inputs of trials; ours


class Scrutiny:
    """The trials and the memory limits of one problem; who has passed once need not again."""

    def __init__(
        self,
        problem: Problem,
        device: Device,
        chip: Chip,
        instructions: int,
        inspector: Inspector | None = None,
        seconds: float = math.inf,
    ) -> None:
        """``seconds`` are those of ``Trials``."""
        self._problem = problem
        room = 0 if is_emulated(device.name) else chip.memory_bytes // _SHARE
        self.trials = Trials(problem, device, instructions, inspector, seconds, room)
        self._physics: Physics | None = Physics(problem, chip)
        self._passed: dict[str, Verdict] = {}  # by identity

    def learn(self, root: Compiled, measured: Measurement) -> tuple[str, ...]:
        """What the input kernel can do is what a candidate must; its own traffic sets no record.

        Returns what there is to say about it.
        """
        timed = measured.source == "events"
        self.trials.learn(root, measured.seconds if timed else 0.0)
        references = self._problem.references
        told = (*self.trials.notes, *([references.note] if references and references.note else []))
        impossible = self._physics.shortfall(measured) if self._physics else ""
        if not impossible:
            return told
        self._physics = None
        return (*told, f"memory limits are not applied: {impossible}")

    def verdict(
        self, program: Compiled, identity: str, first: Instance, measured: Measurement
    ) -> Verdict:
        """The verdict on a candidate that passed on the given inputs; its notes are facts."""
        found = self.correctness(program, identity, first)
        if not found.passed:
            return found
        impossible = self.impossible(measured)
        if impossible is not None:
            return impossible
        operations = self._physics.note(measured) if self._physics else ""
        notes = (*found.notes, *([operations] if operations else []))
        return Verdict(Outcome.PASSED, "", notes=notes)

    def knows(self, identity: str) -> bool:
        """Whether a program stood all trials already."""
        return identity in self._passed

    def correctness(self, program: Compiled, identity: str, first: Instance) -> Verdict:
        """The trials alone."""
        found = self._passed.get(identity)
        if found is None:
            found = self.trials.scrutinise(program, first)
            if found.passed:
                self._passed[identity] = found
        return found

    def impossible(self, measured: Measurement) -> Verdict | None:
        """The verdict on a measurement that is too good to be true."""
        shortfall = self._physics.shortfall(measured) if self._physics else ""
        if not shortfall:
            return None
        fix = "declare the bytes that the task needs, if these are not needed"
        return Verdict(Outcome.SUSPICIOUS, shortfall, fix=fix)
