"""Sets of inputs with what is wanted there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optiml_magic import binding
from optiml_magic.devices.base import Array, Buffer, Case
from optiml_magic.model.task import Task
from optiml_magic.problem.buffers import Wanted, buffer_of
from optiml_magic.problem.extents import foreseen
from optiml_magic.problem.reference import Answer
from optiml_magic.problem.references import NO_MAPS, References, digests_of
from optiml_magic.problem.scales import Maps, scaled
from optiml_magic.problem.sizes import Sizing
from optiml_magic.source.program import Program

Shapes = Mapping[str, tuple[int, ...]]
_WORTH = 1 << 20  # bytes of arrays from which on they are not sent again


@dataclass(frozen=True)
class Instance:
    """One set of inputs: every value by name, the shapes of the buffers, the case.

    ``condition`` says what is particular about it: ``seed 1``, ``n = 31``, ``inputs x 3``. An
    array of ``values`` whose buffer has a map is what that is made of.
    One that is not ``verified`` is there to be measured: nothing is compared on it.
    """

    seed: int
    condition: str
    values: Mapping[str, Any]
    shapes: Shapes
    case: Case
    verified: bool = True


@dataclass(frozen=True)
class Maker:
    """Makes the instances of a task; ``references`` is None where it has no reference."""

    task: Task
    program: Program
    interface: binding.Interface
    references: References | None

    def asked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values that a reference may ask for."""
        outputs = {buffer.name for buffer in self.interface.named("output")}
        return {name: value for name, value in values.items() if name not in outputs}

    def instance(
        self,
        values: Mapping[str, Any],
        condition: str,
        key: str,
        maps: Maps | None = None,
        *,
        twice: bool = False,
    ) -> tuple[Instance, Answer | None]:
        """The case for ``values`` after their ``maps``, and what the reference answered there.

        With ``maps``, even empty ones, a device has these arrays already: it changes large ones
        there. Raises what the reference raises, and a UsageError where values do not fit.
        """
        binding.check_values(self.interface, values)
        digests: Mapping[str, int] = {}
        if maps is not None and _nbytes(values) < _WORTH:
            values, maps = scaled(values, maps), None
        changes = NO_MAPS if maps is None else maps
        answer = None
        if self.references is not None:
            asked, shared = self.asked(values), maps is not None
            answer = self.references.answer(asked, changes, twice=twice, digests=shared)
            digests = answer.digests
        elif maps is not None:
            digests = digests_of(scaled(values, maps))
        starts = self._starts
        buffers = tuple(
            buffer_of(
                self.task,
                bound,
                values,
                _wanted(answer, bound.name),
                starts.get(bound.name),
            )
            for bound in self.interface.buffers
        )
        if maps is not None:
            buffers = tuple(self._changed(b, maps, digests) for b in buffers)
        return self._of(values, condition, Case(key, buffers)), answer

    def unverified(
        self, values: Mapping[str, Any], sizing: Sizing, condition: str = "seed 0"
    ) -> Instance:
        """The case of values as large as the user's own, on which nothing is compared.

        The reference is called on them only where nothing else tells the shape of an output.
        """
        binding.check_values(self.interface, values)
        shapes = self._shapes(values, sizing)
        starts = self._starts
        buffers = tuple(
            buffer_of(self.task, b, values, Wanted(shape=shapes.get(b.name)), starts.get(b.name))
            for b in self.interface.buffers
        )
        case = Case(condition.replace(" ", "-"), buffers)
        return replace(self._of(values, condition, case), verified=False)

    def _shapes(self, values: Mapping[str, Any], sizing: Sizing) -> Shapes:
        """Of the outputs that neither the task nor an array tells."""
        specified = {name for name, shape in self.task.outputs.items() if shape}
        references, given = self.references, {*specified, *values, *self._starts}
        unknown = [b.name for b in self.interface.named("output") if b.name not in given]
        if references is None or not unknown:
            return {}

        def answered(drawn: Mapping[str, Any]) -> Mapping[str, Array]:
            return references.answer(self.asked(drawn)).outputs

        shapes = foreseen(answered, unknown, sizing, values)
        if any(name not in shapes for name in unknown):
            shapes = {name: array.shape for name, array in answered(values).items()}
        return shapes

    @property
    def _starts(self) -> dict[str, str]:
        """The arrays that outputs start as."""
        return {d.buffer: d.value for d in self.program.inits if isinstance(d.value, str)}

    def _of(self, values: Mapping[str, Any], condition: str, case: Case) -> Instance:
        extents = {buffer.name: buffer.array.shape for buffer in case.buffers}
        return Instance(0, condition, values, extents, case)

    def _changed(self, buffer: Buffer, maps: Maps, digests: Mapping[str, int]) -> Buffer:
        """With its map; only an array of the values themselves has a digest."""
        if buffer.role == "output":
            return buffer
        name = self._starts.get(buffer.name, buffer.name)
        return replace(buffer, map=maps.get(name), digest=digests.get(name))


def _wanted(answer: Answer | None, name: str) -> Wanted:
    if answer is None:
        return Wanted()
    return Wanted(answer.outputs.get(name), answer.wide, answer.scales.get(name))


def _nbytes(values: Mapping[str, Any]) -> int:
    return sum(value.nbytes for value in values.values() if isinstance(value, np.ndarray))
