"""The reading of a kernel: its tree followed from its parameters to its end, once and cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

from optiml_magic.kernels.evaluation import State
from optiml_magic.kernels.events import Recorder
from optiml_magic.kernels.execution import Executor
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.expressions import every as parts_of
from optiml_magic.kernels.literals import number
from optiml_magic.kernels.operations import Operations, bounds
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Array, Reading
from optiml_magic.kernels.reductions import reductions
from optiml_magic.kernels.symbols import Symbol, Symbols
from optiml_magic.kernels.tree import Function, Variable
from optiml_magic.kernels.types import INT, UINT, CType, named
from optiml_magic.kernels.unit import Unit
from optiml_magic.kernels.values import Alias, Pointer, Value

Dims = tuple[tuple[str, int], ...]


def read(
    unit: Unit,
    function: Function,
    template: Sequence[str] = (),
    *,
    tuned: Mapping[str, int] | Sequence[str] = (),
    fixed: Mapping[str, int] | None = None,
) -> Reading:
    """What a kernel does with these template arguments.

    ``tuned`` are names that a directive gives values to; they stay symbols. ``fixed`` are built-in
    variables whose values the launch fixes, such as ``blockDim.x``.
    """
    return _read(unit, function, tuple(template), tuple(sorted(tuned)),
                 tuple(sorted((fixed or {}).items())))  # fmt: skip


@lru_cache(maxsize=256)
def _read(
    unit: Unit, function: Function, template: tuple[str, ...], tuned: tuple[str, ...], fixed: Dims
) -> Reading:
    # Loads of an array that the kernel writes are not steady; which are written is known at the end.
    changing: frozenset[str] = frozenset()
    given: dict[Variable | str, frozenset[str]] = {}
    while True:
        reader = _Reader(unit, function, template, tuned, fixed, changing, given)
        reading = reader.reading()
        missed = (reading.written & frozenset(reader.recorder.trusted)) - changing
        if not missed and not reader.recorder.outgrown:
            return reading
        changing |= reading.written
        given = reader.recorder.given


class _Reader:
    def __init__(
        self, unit: Unit, function: Function, template: tuple[str, ...],
        tuned: tuple[str, ...], fixed: Dims, changing: frozenset[str],
        given: Mapping[Variable | str, frozenset[str]],
    ) -> None:  # fmt: skip
        self.unit = unit
        self.function = function
        self.symbols = Symbols()
        self.operations = Operations(self.symbols)
        arrays = {v.name: v for v in _device_arrays(unit)}
        self.recorder = Recorder(self._line, dict(arrays), changing, given=dict(given))
        constants: dict[str, Value] = dict(self._constants())
        for name in tuned:
            form = self.symbols.of(Symbol(name, "scalar", frozenset({name})))
            constants[name] = Value(INT, frozenset({name}), form)
        for name, value in fixed:
            constants[name] = Value(UINT, frozenset(), Polynomial.constant(value))
        constants["warpSize"] = Value(INT, frozenset(), Polynomial.constant(32))
        names, constants = unit.instantiated(  # type: ignore[assignment]
            function, template, unit.aliases, constants, {}, self.symbols
        )
        self.executor = Executor(unit, self.operations, self.recorder, names, constants)

    def _line(self, expression: Expr | None) -> int:
        if expression is None:
            return self.function.line
        for part in parts_of(expression):
            if part.span is not None:
                return self.unit.line(*part.span)
        return self.function.line

    def reading(self) -> Reading:
        executor = self.executor
        env: dict[Variable, Value | Alias] = {}
        for parameter in self.function.parameters:
            env[parameter] = self._parameter(parameter)
        executor.state = State(env)
        executor.run(self.function.body)
        recorder = self.recorder
        accesses = tuple(recorder.accesses)
        return Reading(
            function=self.function,
            symbols=self.symbols,
            arrays=recorder.arrays,
            accesses=accesses,
            axes=tuple(recorder.axes),
            guards=tuple(recorder.guards),
            reductions=reductions(recorder.uses, accesses, self.symbols, recorder.stepping),
            barriers=tuple(recorder.barriers),
            verbatim=tuple(recorder.verbatim),
            types=executor.types,
            unclear=frozenset(recorder.unclear),
            calls=frozenset(recorder.calls),
        )

    def _parameter(self, parameter: Variable) -> Value:
        kind = self.executor.declared(parameter)
        name = parameter.name
        roots = frozenset({name})
        if kind.depth:
            element = kind.pointee
            self.recorder.arrays[name] = Array(
                name, "global", element, const=parameter.type.const, restrict=parameter.restrict
            )
            shape: tuple[Polynomial | None, ...] = ()
            if parameter.extents:
                extents = [self.executor.value(e) if e is not None else None
                           for e in parameter.extents]  # fmt: skip
                shape = tuple(e.form if e is not None else None for e in extents)
            return Value(kind, roots, pointer=Pointer(name, Polynomial()),
                         holds=roots, shape=shape)  # fmt: skip
        if kind.integral:
            low, high = bounds(kind)
            form = self.symbols.of(Symbol(name, "scalar", roots, low=low, high=high))
            return Value(kind, roots, form)
        if kind.kind in ("record", "unknown"):
            return self._record(name, kind)
        return Value(kind, roots)

    def _record(self, name: str, kind: CType) -> Value:
        """A struct by value: its numbers are scalars, its pointers lead to arrays of their own."""
        roots = frozenset({name})
        fields: dict[str, Value] = {}
        held = frozenset({name}) if not self.unit.members(kind.name) else frozenset[str]()
        for member in self.unit.members(kind.name):
            inner, _ = self.unit.member(kind.name, member.name)
            own = f"{name}.{member.name}"
            if inner.depth or inner.kind in ("unknown", "record"):
                fields[member.name] = Value(inner, roots, holds=roots)
                held |= roots
            elif inner.integral and not member.array:
                form = self.symbols.of(Symbol(own, "scalar", roots))
                fields[member.name] = Value(inner, roots, form)
            else:
                fields[member.name] = Value(inner, roots)
        if held:
            self.recorder.arrays[name] = Array(name, "global", kind)
        return Value(kind, roots, holds=held, fields=fields)

    def _constants(self) -> Mapping[str, Value]:
        """Named whole numbers of the text: constants and enumerators."""
        found: dict[str, Value] = {}
        from optiml_magic.source.values import constants

        for name, value in constants(self.unit.syntax).items():
            found[name] = Value(INT, frozenset(), Polynomial.constant(value))
        return found


def _device_arrays(unit: Unit) -> tuple[Array, ...]:
    """The variables of the module: arrays, and what is alone, without extents."""
    from optiml_magic.kernels.variables import device_variables, dynamic_shared

    found = [
        Array(name, "shared", named(spelled, unit.aliases), (None,), dynamic=True)
        for name, spelled in dynamic_shared(unit).items()
    ]
    for variable in device_variables(unit, pointers=True):
        kind = named(variable.ctype, unit.aliases)
        found.append(
            Array(variable.bare_name, "global", kind, (None,) if "[" in variable.ctype else (),
                  variable.const or variable.space == "constant")
        )  # fmt: skip
    return tuple(replace(array) for array in found)


__all__ = ["number", "read"]
