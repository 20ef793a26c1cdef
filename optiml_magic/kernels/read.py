"""The reading of a kernel: its tree followed from its parameters to its end, once and cached."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from optiml_magic.kernels.events import Recorder
from optiml_magic.kernels.execution import Executor
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.expressions import every as parts_of
from optiml_magic.kernels.merging import State
from optiml_magic.kernels.operations import Operations, bounds
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Array, Reading
from optiml_magic.kernels.reductions import reductions
from optiml_magic.kernels.symbols import Symbol, Symbols
from optiml_magic.kernels.tree import Function, Variable
from optiml_magic.kernels.types import INT, UINT, CType
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
    # Loads of an array that the kernel writes are not steady: what it writes is known at the end.
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
        self.recorder = Recorder(self._line, {}, changing, given=dict(given))
        constants: dict[str, Value] = {}
        for name in tuned:
            form = self.symbols.of(Symbol(name, "scalar", frozenset({name})))
            constants[name] = Value(INT, frozenset({name}), form)
        for name, value in fixed:
            constants[name] = Value(UINT, frozenset(), Polynomial.constant(value))
        constants["warpSize"] = Value(INT, frozenset(), Polynomial.constant(32))
        names, constants = unit.instantiated(  # type: ignore[assignment]
            function, template, unit.aliases, constants, {}, self.symbols
        )
        self.executor = Executor(
            unit, self.operations, self.recorder, names, constants, function.template
        )
        self._module()

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
            reductions=reductions(
                recorder.uses, accesses, self.symbols, executor.types, recorder.stepping
            ),
            barriers=tuple(recorder.barriers),
            verbatim=tuple(recorder.verbatim),
            types=executor.types,
            unclear=frozenset(recorder.unclear),
            calls=frozenset(recorder.calls),
            rests={
                expr: tuple(r for r in found if r is not None)
                for expr, found in recorder.rests.items() if None not in found
            },
        )  # fmt: skip

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
            form = self.symbols.of(
                Symbol(name, "scalar", roots, width=kind.size or 0, low=low, high=high)
            )
            return Value(kind, roots, form)
        if kind.kind in ("record", "unknown"):
            return self._record(name, kind)
        return Value(kind, roots)

    def _record(self, name: str, kind: CType) -> Value:
        """A struct by value: its numbers are scalars, its pointers lead to arrays of their own."""
        roots = frozenset({name})
        struct = self.unit.structs.of(kind.name)
        if struct is None:  # it may hold anything
            self.recorder.arrays[name] = Array(name, "global", kind)
            return Value(kind, roots, holds=roots)
        fields: dict[str, Value] = {}
        held: frozenset[str] = frozenset()
        for field in struct.fields:
            own = f"{name}.{field.name}"
            inner = field.type
            if inner.depth == 1 and not field.rank:
                self.recorder.arrays[own] = Array(own, "global", inner.pointee)
                fields[field.name] = Value(inner, roots, pointer=Pointer(own, Polynomial()),
                                           holds=frozenset({own}))  # fmt: skip
                held |= {own}
            elif inner.depth or inner.kind in ("unknown", "record"):
                self.recorder.arrays[name] = Array(name, "global", kind)
                fields[field.name] = Value(inner, roots, holds=roots)
                held |= roots
            elif inner.integral and not field.rank:
                form = self.symbols.of(Symbol(own, "scalar", roots, width=inner.size or 0))
                fields[field.name] = Value(inner, roots, form)
            else:
                fields[field.name] = Value(inner, roots)
        return Value(kind, roots, holds=held, fields=fields)

    def _module(self) -> None:
        """Named whole numbers of the text, and what its module keeps in memory."""
        executor = self.executor
        constants = dict(executor.constants)
        last = -1
        for name, given in self.unit.enumerators:
            form = executor.integer(executor.value(given)) if given is not None else None
            count = form.value if form is not None else last + 1
            if count is not None:
                constants[name] = Value(INT, frozenset(), Polynomial.constant(count))
                last = count
            executor.constants = constants
        for declaration in self.unit.declarations:
            stays = any(word in declaration.words for word in _KEPT)
            for variable in declaration.variables:
                number = self._number(variable)
                if number is not None:
                    constants.setdefault(variable.name, number)
                    executor.constants = constants
                elif stays:
                    self._kept(variable, declaration.words)

    def _number(self, variable: Variable) -> Value | None:
        """A constant whose number the text has, or a struct of such; None of what may change."""
        executor, kind = self.executor, self.executor.declared(variable)
        if not variable.type.const or variable.array:
            return None
        if variable.value is not None:
            value = executor.convert(executor.value(variable.value), kind)
            return value if value.form is not None and value.form.value is not None else None
        struct = self.unit.structs.of(kind.name) if variable.initial else None
        if struct is None or len(struct.fields) != len(variable.initial):
            return None
        if any(
            f.rank or f.type.depth or f.type.kind not in ("int", "float") for f in struct.fields
        ):
            return None
        fields = {
            field.name: executor.convert(executor.value(given), field.type)
            for field, given in zip(struct.fields, variable.initial, strict=True)
        }
        return Value(kind, frozenset(), fields=fields)

    def _kept(self, variable: Variable, words: str) -> None:
        extents = [self.executor.value(e).form if e is not None else None
                   for e in variable.extents]  # fmt: skip
        kind = self.executor.declared(variable)
        self.recorder.arrays[variable.name] = Array(
            variable.name, "shared" if "__shared__" in words else "global", kind, tuple(extents),
            variable.type.const or "__constant__" in words, dynamic="extern" in words,
        )  # fmt: skip


_KEPT = ("__device__", "__constant__", "__managed__", "__shared__")
