"""The launches of a program in the launcher in C: first what they need as constants, then they."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from optiml_magic.exports.base import Exportable, Round, Step
from optiml_magic.exports.c_expressions import CExpressions
from optiml_magic.kernels.signature import Parameter
from optiml_magic.source.expressions import Expression

_GRID = (2**31 - 1, 65535, 65535)
_BLOCK = (1024, 1024, 64)


@dataclass(frozen=True)
class _Configured:
    """The names of a launch's constants; ``values`` has None for a pointer."""

    grid: str
    block: str
    shared: str
    values: tuple[str | None, ...]


@dataclass(frozen=True)
class _Place:
    """The launches of which one runs, and the name of the constant that says which of several."""

    chosen: str
    calls: tuple[_Configured, ...]


@dataclass(frozen=True)
class PlannedRound:
    """The names of a round's constants; ``count`` is that of its repetitions, "" for none."""

    count: str
    places: tuple[_Place, ...]


@dataclass(frozen=True)
class CudaLaunches:
    """Writes the launches of one program.

    ``types`` are the C types of its buffers, those of ``constant`` are passed as const, and
    ``scalars`` the C types of its scalars. ``stream`` and ``status`` are names of the launcher.
    """

    what: Exportable
    spell: CExpressions
    fresh: Callable[[str], str]
    types: Mapping[str, str]
    constant: Collection[str]
    scalars: Mapping[str, str]
    stream: str
    status: str

    def planned(self, group: Round) -> Generator[str, None, PlannedRound]:
        """The extents of a round as constants, and their names."""
        count = ""
        if group.repeat:
            count = self.fresh("rounds")
            yield f"const long long {count} = {self.spell.text(group.repeat.count)};"
            yield f"if ({count} < 0) {self.spell.flag} = true;"
        places = []
        for place in group.places:
            if len(place) == 1:
                places.append(_Place("", ((yield from self._configured(place[0], self.spell)),)))
            else:
                places.append((yield from self._chosen(place)))
        return PlannedRound(count, tuple(places))

    def _chosen(self, place: tuple[Step, ...]) -> Generator[str, None, _Place]:
        """A dispatch; what is wrong with a launch that does not run is nothing to complain of."""
        chosen, calls = self.fresh("chosen"), []
        conditions = [x.directive.condition for x in place]
        texts = [self.spell.text(condition) for condition in conditions if condition is not None]
        choice = "".join(f"({text}) ? {at} : " for at, text in enumerate(texts))
        yield f"const int {chosen} = {choice}{len(texts)};"
        for at, step in enumerate(place):
            unfit = self.fresh(f"{step.bare_name}_unfit")
            yield f"bool {unfit} = false;"
            spell = replace(self.spell, flag=unfit)
            calls.append((yield from self._configured(step, spell, f"{step.bare_name}_")))
            yield f"if ({chosen} == {at} && {unfit}) {self.spell.flag} = true;"
        return _Place(chosen, tuple(calls))

    def _configured(
        self, step: Step, spell: CExpressions, prefix: str = ""
    ) -> Generator[str, None, _Configured]:
        """Grid, block, shared memory and computed arguments of a launch as constants."""
        directive = step.directive
        grid, block = self.fresh(f"{prefix}grid"), self.fresh(f"{prefix}block")
        yield f"const dim3 {grid}({self._axes(directive.grid, _GRID, spell)});"
        yield f"const dim3 {block}({self._axes(directive.block, _BLOCK, spell)});"
        if math.prod(self.what.constants(directive.block) or (1025,)) > 1024:
            yield f"if ({block}.x * {block}.y * {block}.z > 1024) {spell.flag} = true;"
        shared = "0"
        if directive.shared is not None:
            shared = self.fresh(f"{prefix}shared")
            yield f"const long long {shared} = {spell.text(directive.shared)};"
            yield f"if ({shared} < 0 || {shared} > 2147483647) {spell.flag} = true;"
        arguments: list[str | None] = []
        for parameter, expression in step.arguments:
            if parameter.pointer:
                arguments.append(None)
                continue
            text = self._scalar(parameter, expression, spell)
            if expression.name is None or text != expression.name:
                name = self.fresh(f"{prefix}{parameter.name}")
                yield f"const {parameter.ctype} {name} = {text};"
                text = name
            arguments.append(text)
        return _Configured(grid, block, shared, tuple(arguments))

    def _axes(
        self, expressions: tuple[Expression, ...], limits: tuple[int, int, int], spell: CExpressions
    ) -> str:
        constant = self.what.constants(expressions)
        if constant and all(1 <= v <= most for v, most in zip(constant, limits, strict=False)):
            return ", ".join(spell.text(e) for e in expressions)
        call = spell.functions["extent"]
        spell.used.add("extent")
        return ", ".join(
            f"{call}({spell.text(e)}, {limit}, {spell.flag})"
            for e, limit in zip(expressions, limits, strict=False)
        )

    def _scalar(self, parameter: Parameter, expression: Expression, spell: CExpressions) -> str:
        """A by-value argument in its parameter's type; what does not fit is noted."""
        name, kind = expression.name, np.dtype(parameter.dtype).kind if parameter.dtype else ""
        if name is not None and self.scalars.get(name) == parameter.ctype:
            return name
        if name is not None and kind not in ("i", "u"):
            value = name if name in self.scalars else spell.text(expression)
            return f"static_cast<{parameter.ctype}>({value})"
        if kind in ("i", "u"):
            spell.used.add("fits")
            spelled = f"(long long){name}" if name in self.scalars else ""
            value = spelled or spell.text(expression)
            return f"{spell.functions['fits']}<{parameter.ctype}>({value}, {spell.flag})"
        return f"static_cast<{parameter.ctype}>({spell.text(expression)})"

    def launched(self, group: Round, planned: PlannedRound) -> Iterator[str]:
        """The calls of a round; after one that fails none is made."""
        pairs = list(zip(group.places, planned.places, strict=True))
        if group.repeat is None:
            for place, found in pairs:
                yield from self._calls(place, found, {})
            return
        swapped = {name: self.fresh(name) for name in dict.fromkeys(sum(group.repeat.swaps, ()))}
        index = self.fresh("round")
        for name, local in swapped.items():
            yield f"void* {local} = (void*){name};"
        ok = f"{self.status} == cudaSuccess"
        yield f"for (long long {index} = 0; {index} < {planned.count} && {ok}; ++{index}) {{"
        for place, found in pairs:
            yield from (f"    {line}" for line in self._calls(place, found, swapped))
        for one, two in group.repeat.swaps:
            yield f"    std::swap({swapped[one]}, {swapped[two]});"
        yield "}"

    def _calls(
        self, place: tuple[Step, ...], found: _Place, swapped: dict[str, str]
    ) -> Iterator[str]:
        calls = [self._call(*both, swapped) for both in zip(place, found.calls, strict=True)]
        if not found.chosen:
            yield self.then(calls[0])
            return
        for at, call in enumerate(calls):
            test = f"if ({found.chosen} == {at}) " if at < len(calls) - 1 else ""
            yield f"{'} else ' if at else ''}{test}{{"
            yield f"    {self.then(call)}"
        yield "}"

    def _call(self, step: Step, call: _Configured, swapped: dict[str, str]) -> str:
        arguments = [
            value or self._address(parameter, expression.text, swapped)
            for (parameter, expression), value in zip(step.arguments, call.values, strict=True)
        ]
        first = [step.name, call.grid, call.block, call.shared, self.stream]
        return f"{self.spell.functions['launch']}({', '.join([*first, *arguments])})"

    def _address(self, parameter: Parameter, name: str, swapped: dict[str, str]) -> str:
        const = "const " if parameter.const else ""
        if name in swapped:
            return f"({const}{parameter.ctype}*){swapped[name]}"
        fits = self.types[name] == parameter.ctype and (
            parameter.const or name not in self.constant
        )
        return name if fits else f"({const}{parameter.ctype}*){name}"

    def then(self, call: str) -> str:
        """A call that is made where none failed before."""
        return f"if ({self.status} == cudaSuccess) {self.status} = {call};"
