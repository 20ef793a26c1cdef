"""The launches of a program in an exported module: first their extents, then they."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from optiml_magic.errors import UsageError
from optiml_magic.exports.base import Exportable, Round, Step
from optiml_magic.exports.python_expressions import PythonExpressions
from optiml_magic.exports.python_literals import dtype_text, quoted, tupled
from optiml_magic.kernels.signature import Parameter
from optiml_magic.model.dtypes import BFLOAT16
from optiml_magic.source.expressions import Expression


@dataclass(frozen=True)
class CupyLaunches:
    """Writes the launches of one program; ``names`` are the variables of the module's function."""

    what: Exportable
    spell: PythonExpressions
    fresh: Callable[[str], str]
    names: Mapping[str, str]
    _extents: dict[int, tuple[str, str]] = field(default_factory=dict)  # by place in the text

    def lanes(self, name: str) -> int:
        """The widest vector through which a buffer is reached whichever launches run."""
        places = (place for group in self.what.rounds for place in group.places)
        return max((min(_lanes(step, name) for step in place) for place in places), default=1)

    def extents(self) -> Iterator[str]:
        """The grid and the block of every launch that runs, before the first of them does."""
        self.spell.used.add("_launch")
        for group in self.what.rounds:
            for place in group.places:
                prefixed = len(place) > 1
                yield from self._one_of(place, partial(self._prepared, prefixed=prefixed))

    def launched(self, group: Round) -> Iterator[str]:
        """The calls of a round."""
        names = dict(self.names)
        if group.repeat is None:
            for place in group.places:
                yield from self._one_of(place, lambda step: self._call(step, names))
            return
        for name in dict.fromkeys(name for pair in group.repeat.swaps for name in pair):
            names[name] = self.fresh(self.names[name])
            yield f"{names[name]} = {self.names[name]}"
        self.spell.used.add("_count")
        yield f'for _ in range(_count("repeat", {self.spell.text(group.repeat.count)}, 0)):'
        for place in group.places:
            lines = self._one_of(place, lambda step: self._call(step, names))
            yield from (f"    {line}" for line in lines)
        for one, two in group.repeat.swaps:
            yield f"    {names[one]}, {names[two]} = {names[two]}, {names[one]}"

    def _one_of(
        self, place: tuple[Step, ...], written: Callable[[Step], Iterator[str]]
    ) -> Iterator[str]:
        """The lines for the launch that runs, under its condition where there is a choice."""
        if len(place) == 1:
            yield from written(place[0])
            return
        for at, step in enumerate(place):
            condition = step.directive.condition
            word = "elif" if at else "if"
            yield f"{word} {self.spell.condition(condition)}:" if condition else "else:"
            yield from (f"    {line}" for line in written(step))

    def _prepared(self, step: Step, *, prefixed: bool) -> Iterator[str]:
        prefix = f"{step.bare_name}_" if prefixed else ""
        grid, block = self.fresh(f"{prefix}grid"), self.fresh(f"{prefix}block")
        self._extents[step.directive.start] = grid, block
        for variable, what, parts in (
            (grid, "grid", step.directive.grid),
            (block, "block", step.directive.block),
        ):
            axes = [self.spell.text(part) for part in parts]
            if self.what.constants(parts):
                yield f"{variable} = {tupled([*axes, '1', '1'][:3])}"
            else:
                self.spell.used.add("_extents")
                yield f"{variable} = _extents({quoted(what)}, {', '.join(axes)})"
        for buffer in self.what.arrays:
            lanes = _lanes(step, buffer.name)
            if lanes > self.lanes(buffer.name):
                self.spell.used.add("_array")
                rank, dtype = len(self.what.shapes[buffer.name]), dtype_text(buffer.dtype)
                given = f"{quoted(buffer.name)}, {self.names[buffer.name]}, {dtype}, {rank}"
                yield f"_array({given}, lanes={lanes})"

    def _call(self, step: Step, names: Mapping[str, str]) -> Iterator[str]:
        grid, block = self._extents[step.directive.start]
        arguments = [
            names[expression.text] if parameter.pointer else self._passed(parameter, expression)
            for parameter, expression in step.arguments
        ]
        directive = step.directive
        shared = f", {self.spell.text(directive.shared)}" if directive.shared else ""
        yield f"_launch({quoted(step.name)}, {grid}, {block}, {tupled(arguments)}{shared})"

    def _passed(self, parameter: Parameter, expression: Expression) -> str:
        """A by-value argument in its parameter's type."""
        variable = self.spell.text(expression)
        if parameter.dtype is None or parameter.lanes > 1:
            value = self.what.values.get(expression.name or "")
            if not isinstance(value, (np.void, np.ndarray)):
                raise UsageError(
                    f"`{parameter.name}` is a {parameter.ctype}, which this export cannot pass",
                    fix="export a .cu file",
                )
            self.spell.used.add("_record")
            return f"_record({quoted(parameter.name)}, {variable}, {value.nbytes})"
        dtype = np.dtype(parameter.dtype)
        if dtype.kind in "iu":
            self.spell.used.add("_fit")
            return f"_fit({quoted(parameter.name)}, {variable}, {dtype_text(parameter.dtype)})"
        if dtype.str == "<f2" or dtype == BFLOAT16:
            self.spell.used.add("_record")
            return f"_record({quoted(parameter.name)}, {dtype_text(dtype)}({variable}), 2)"
        return f"{dtype_text(parameter.dtype)}({variable})"


def _lanes(step: Step, name: str) -> int:
    """The widest vector through which a launch reaches a buffer."""
    given = [p.lanes for p, e in step.arguments if p.pointer and e.text == name]
    return max(given, default=1)
