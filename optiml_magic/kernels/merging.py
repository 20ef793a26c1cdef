"""The point that a walk through a kernel has reached: what holds there, and values combined."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from optiml_magic.kernels import types
from optiml_magic.kernels.combining import Meanings
from optiml_magic.kernels.events import Recorder
from optiml_magic.kernels.expressions import Expr, Name
from optiml_magic.kernels.expressions import every as every_part
from optiml_magic.kernels.operations import Operations
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.structs import lanes
from optiml_magic.kernels.symbols import (
    UNKNOWN,
    Condition,
    Some,
    Untold,
    every,
)
from optiml_magic.kernels.tree import TemplateParameter, Variable
from optiml_magic.kernels.types import CType, arithmetic
from optiml_magic.kernels.unit import Unit
from optiml_magic.kernels.values import (
    Alias,
    Pointer,
    Value,
)

_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
_LANES = "xyzw"
_ZERO, _ONE = Polynomial(), Polynomial.constant(1)


@dataclass
class State:
    """What holds at a point: the values of locals, and the conditions on the way there."""

    env: dict[Variable, Value | Alias]
    path: tuple[Condition, ...] = ()
    alive: bool = True

    def fork(self, *conditions: Condition) -> State:
        return State(dict(self.env), (*self.path, *conditions), self.alive)


@dataclass(frozen=True)
class _Meaning:
    """What a local was given, and what it takes for it to be worth the same still."""

    expression: Expr
    written: Mapping[Variable, int]
    loops: tuple[str, ...]
    path: tuple[Condition, ...]
    memory: tuple[int, int]


@dataclass
class Walker:
    """What is known where a walk through a kernel is; ``recorder`` has what it saw.

    Locals that are declared ``auto`` have the types that are ``deduced`` of what they begin with.
    """

    unit: Unit
    operations: Operations
    recorder: Recorder
    names: Mapping[str, str]
    constants: Mapping[str, Value]
    template: tuple[TemplateParameter, ...] = ()
    state: State = field(default_factory=lambda: State({}))
    types: dict[Expr, CType] = field(default_factory=dict)
    written: Counter[Variable] = field(default_factory=Counter)
    deduced: dict[Variable, CType] = field(default_factory=dict)
    _meant: dict[Variable, _Meaning] = field(default_factory=dict)

    @contextmanager
    def naming(self, variable: Variable, expression: Expr) -> Iterator[None]:
        """A local is given what an expression is worth, and stands for it from then on.

        One of a type that does not hold each such number stands for nothing but itself.
        """
        named = {p.variable for p in every_part(expression) if isinstance(p, Name)}
        written = {v: self.written[v] for v in named if v is not None}
        memory = self.recorder.memory
        yield
        self.written[variable] += 1
        written.setdefault(variable, self.written[variable])
        own, told = types.named(variable.type.base, self.names), self.types.get(expression)
        own = replace(own, depth=variable.type.depth)
        if variable.type.base != "auto" and (told is None or not types.keeps(own, told)):
            self._meant.pop(variable, None)
            return
        loops, path = self.recorder.loops, self.state.path
        self._meant[variable] = _Meaning(expression, written, loops, path, memory)

    def meanings(self) -> Meanings:
        """The expressions that locals stand for here: nothing in them has changed since."""
        recorder, path = self.recorder, self.state.path
        if recorder.unclear:
            return {}
        return {
            variable: meaning.expression
            for variable, meaning in self._meant.items()
            if meaning.loops == recorder.loops
            and meaning.memory == recorder.memory
            and path[: len(meaning.path)] == meaning.path
            and all(self.written[v] == count for v, count in meaning.written.items())
        }

    def truth(self, value: Value) -> Condition:
        if value.truth is not None:
            return value.truth
        if value.form is not None and value.type.integral:
            return self.operations.compared("!=", value.form, _ZERO)
        return self.untold("a value", value.depends)

    def untold(self, text: str, depends: frozenset[str]) -> Condition:
        return Untold(text, depends, serial=self.operations.serial())

    def integer(self, value: Value, *where: Condition) -> Polynomial:
        """The form of a value as the number it stands for, ``where`` these hold as well."""
        if value.truth is not None and value.form is None:
            return self.operations.select(value.truth, _ONE, _ZERO)
        if value.form is None:
            return self.operations.unknown(value.depends, value.type)
        return self.operations.settled(value.form, value.type, (*self.state.path, *where))

    def common(self, then: CType, other: CType) -> CType:
        """The type of a choice of these two."""
        if then == other or not (then.depth or other.depth):
            return then if then == other else arithmetic(then, other)
        return then if then.depth else other

    def merged(self, test: Condition, then: Value, other: Value) -> Value:
        """``test ? then : other`` of two values."""
        if then == other:
            return then
        depends = then.depends | other.depends | test.depends
        holds = then.holds | other.holds
        kind = self.common(then.type, other.type)
        if kind.integral:
            if then.truth is not None and other.truth is not None:
                truth = Some((every((test, then.truth)), every((~test, other.truth))))
                return Value(kind, depends, truth=truth)
            if isinstance(test, Untold):
                return self.opaque(kind, depends, holds)
            forms = self.integer(then, test), self.integer(other, ~test)
            form = self.operations.select(test, *forms)
            return Value(kind, depends, form, holds=holds)
        if kind.depth and then.pointer and other.pointer and (
            then.pointer.array == other.pointer.array
        ):  # fmt: skip
            ours, theirs = then.pointer.offset, other.pointer.offset
            if ours is not None and theirs is not None and not isinstance(test, Untold):
                offset = self.operations.select(test, ours, theirs)
                return Value(kind, depends, pointer=Pointer(then.pointer.array, offset),
                             holds=holds)  # fmt: skip
        if kind.depth:
            depends |= {UNKNOWN}
        fields: dict[str, Value] | None = None
        if then.fields and other.fields:
            fields = {name: self.merged(test, then.fields[name], other.fields[name])
                      for name in then.fields if name in other.fields}  # fmt: skip
        return Value(kind, depends, holds=holds, fields=fields)

    def merge_values(
        self, test: Condition, then: dict[Variable, Value | Alias],
        into: dict[Variable, Value | Alias],
    ) -> None:  # fmt: skip
        """Let ``into`` have what ``then`` has where ``test`` holds, and its own elsewhere."""
        for variable, value in then.items():
            own = into.get(variable)
            if own is value or isinstance(value, Alias):
                continue
            if isinstance(own, Value):
                into[variable] = self.merged(test, value, own)

    def convert(self, value: Value, kind: CType) -> Value:
        """A value as another type."""
        if kind.kind == "unknown" or value.type == kind or value.closure is not None:
            return value
        if kind.depth:
            return replace(value, type=kind, form=None, truth=None, shape=(), digits=())
        if not kind.integral:
            if value.type.kind in ("vector", "record"):
                return replace(value, type=kind)
            return Value(kind, value.depends, holds=value.holds)
        if value.truth is not None and kind.kind == "bool":
            return replace(value, type=kind)
        if value.truth is not None and value.form is None:
            return self.number(self.operations.select(value.truth, _ONE, _ZERO), kind)
        if value.form is None:
            return self.opaque(kind, value.depends, value.holds)
        if not value.type.integral:
            return replace(value, type=kind)
        form = self.operations.converted(value.form, value.type, kind, self.state.path)
        return Value(kind, self.operations.symbols.depends(form), form, holds=value.holds)

    def type(self, spelled: str) -> CType:
        return self.unit.structs.type(spelled, self.names)

    def declared(self, variable: Variable) -> CType:
        """The type of a variable, or of the elements of an array."""
        if variable in self.deduced:
            return self.deduced[variable]
        kind = self.type(variable.type.base)
        return replace(kind, depth=kind.depth + variable.type.depth)

    def number(self, form: Polynomial, kind: CType) -> Value:
        return Value(kind, self.operations.symbols.depends(form), form)

    def opaque(self, kind: CType, depends: frozenset[str], holds: frozenset[str]) -> Value:
        """A value that is not followed."""
        form = self.operations.unknown(depends, kind) if kind.integral else None
        return Value(kind, depends | {UNKNOWN}, form, holds=holds)

    def member_type(self, kind: CType, name: str) -> CType:
        if kind.kind == "vector" and kind.depth == 0:
            return kind.lane
        struct = self.unit.structs.of(kind.name)
        found = struct.field(name) if struct is not None else None
        return found.type if found is not None else types.UNKNOWN

    def member_extents(self, kind: CType, name: str) -> tuple[int, ...]:
        """Those of a member that is an array."""
        struct = self.unit.structs.of(kind.name) if kind.kind == "record" else None
        found = struct.field(name) if struct is not None else None
        return found.extents if found is not None else ()

    def members(self, kind: CType) -> tuple[str, ...]:
        """The names of the members of a vector or a struct, in their order."""
        if kind.kind == "vector":
            return tuple(lanes(kind.lanes))
        struct = self.unit.structs.of(kind.name)
        return tuple(field.name for field in struct.fields) if struct is not None else ()

    def member_offset(self, kind: CType, name: str) -> int | None:
        """Bytes from the start of a vector or a struct to one of its members."""
        if kind.kind == "vector":
            return _LANES.index(name) * (kind.lane.size or 0) if name in _LANES else None
        struct = self.unit.structs.of(kind.name)
        found = struct.field(name) if struct is not None else None
        return found.offset if found is not None else None
