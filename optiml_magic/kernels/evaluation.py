"""Expressions followed through a kernel: what each is worth, and the accesses it makes.

One walk in the order of execution, on values that are forms over threads, counters and sizes
(symbolic execution; King, CACM 1976). What is not followed is unknown, never a constant.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from optiml_magic.kernels import types
from optiml_magic.kernels.events import Recorder
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Braces,
    Call,
    Cast,
    Choice,
    Expr,
    Index,
    Lambda,
    Literal,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    builtin,
)
from optiml_magic.kernels.layouts import lanes
from optiml_magic.kernels.literals import number
from optiml_magic.kernels.operations import Operations, bounds
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Access, Array
from optiml_magic.kernels.symbols import (
    MEMORY,
    UNKNOWN,
    Always,
    Condition,
    Some,
    Symbol,
    Untold,
    every,
)
from optiml_magic.kernels.tree import TemplateParameter, Variable
from optiml_magic.kernels.types import CType, arithmetic, named, promoted
from optiml_magic.kernels.unit import Unit
from optiml_magic.kernels.values import (
    Alias,
    Closure,
    Elsewhere,
    Local,
    Memory,
    Place,
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


@dataclass
class Evaluator:
    """Evaluates expressions in ``state`` and records what they do."""

    unit: Unit
    operations: Operations
    recorder: Recorder
    names: Mapping[str, str]
    constants: Mapping[str, Value]
    template: tuple[TemplateParameter, ...] = ()
    state: State = field(default_factory=lambda: State({}))
    types: dict[Expr, CType] = field(default_factory=dict)

    # -- entry points

    def value(self, expression: Expr) -> Value:
        """What an expression is worth; what it does is recorded."""
        found = self._evaluated(expression)
        self.types[expression] = found.type
        return found

    def _evaluated(self, expression: Expr) -> Value:
        match expression:
            case Name():
                return self.name(expression)
            case Binary():
                return self.binary(expression)
            case Literal():
                return self.literal(expression)
            case Index():
                return self.load(self.place(expression), expression)
            case Member():
                return self.member(expression)
            case Call():
                return self.call(expression)
            case Unary():
                return self.unary(expression)
            case Assign():
                return self.assign(expression)
            case Cast():
                return self.cast(expression)
            case Step():
                return self.step(expression)
            case Choice():
                return self.choice(expression)
            case Braces():
                return self.braces(expression)
            case Lambda():
                return self.closure(expression)
            case Unread():
                self.disturb(expression.mentions, expression)
        return Value(depends=frozenset({UNKNOWN}))

    def condition(self, expression: Expr) -> Condition:
        """An expression as a condition."""
        return self.truth(self.value(expression))

    def truth(self, value: Value) -> Condition:
        if value.truth is not None:
            return value.truth
        if value.form is not None and value.type.integral:
            return self.operations.compared("!=", value.form, _ZERO)
        return self.untold("a value", value.depends)

    def untold(self, text: str, depends: frozenset[str]) -> Condition:
        return Untold(text, depends, serial=self.operations.serial())

    def integer(self, value: Value) -> Polynomial:
        """The form of a value as the number it stands for."""
        if value.truth is not None and value.form is None:
            return self.operations.select(value.truth, _ONE, _ZERO)
        if value.form is None:
            return self.operations.unknown(value.depends, value.type)
        return self.operations.settled(value.form, value.type, self.state.path)

    def type(self, spelled: str) -> CType:
        return self.unit.structs.type(spelled, self.names)

    def declared(self, variable: Variable) -> CType:
        """The type of a variable, or of the elements of an array."""
        kind = self.type(variable.type.base)
        return replace(kind, depth=kind.depth + variable.type.depth)

    def number(self, form: Polynomial, kind: CType) -> Value:
        return Value(kind, self.operations.symbols.depends(form), form)

    def opaque(self, kind: CType, depends: frozenset[str], holds: frozenset[str]) -> Value:
        """A value that is not followed."""
        form = self.operations.unknown(depends, kind) if kind.integral else None
        return Value(kind, depends | {UNKNOWN}, form, holds=holds)

    # -- names and places

    def name(self, expression: Name) -> Value:
        variable = expression.variable
        if variable is None:
            return self._global(expression)
        found = self.state.env.get(variable)
        if isinstance(found, Alias):
            return self.load(found.place, expression)
        self.recorder.read((variable,), expression)
        return found if found is not None else self.opaque(self.declared(variable), frozenset(),
                                                           frozenset())  # fmt: skip

    def _global(self, expression: Name) -> Value:
        name = expression.name
        found = self.constants.get(name)
        if found is not None:
            return found
        array = self.recorder.arrays.get(name)
        if array is not None:
            if array.extents:
                return Value(array.element.pointer, frozenset(), pointer=Pointer(name, _ZERO),
                             holds=frozenset({name}), shape=array.extents[1:])  # fmt: skip
            place = Memory(Value(array.element.pointer, pointer=Pointer(name, _ZERO),
                                 holds=frozenset({name})), array.element)  # fmt: skip
            return self.load(place, expression)
        return self.opaque(types.UNKNOWN, frozenset(), frozenset())

    def place(self, expression: Expr) -> Place:
        """What an expression designates."""
        match expression:
            case Name(variable=Variable() as variable):
                found = self.state.env.get(variable)
                if isinstance(found, Alias):
                    return found.place
                return Local(variable)
            case Name(name=name) if (array := self.recorder.arrays.get(name)) is not None:
                pointer = Value(array.element.pointer, pointer=Pointer(name, _ZERO),
                                holds=frozenset({name}))  # fmt: skip
                return Memory(pointer, array.element)
            case Index(base=base, index=index):
                return self.element(self.value(base), self.value(index))
            case Unary(op="*", operand=operand):
                return self.element(self.value(operand), self.number(_ZERO, types.INT))
            case Member():
                return self._member_place(expression)
            case Cast(operand=operand, type=spelled) if "&" in spelled:
                inner = self.place(operand)
                kind = self.type(spelled)
                return replace(inner, type=kind) if isinstance(inner, Memory) else inner
            case Assign() | Step() if not (isinstance(expression, Step) and not expression.prefix):
                self.value(expression)
                return self.place(expression.target)
            case Choice(test=test, then=then, other=other):
                self.value(test)
                sides = [self.place(then), self.place(other)]
                holds = frozenset[str]().union(*(self.holds(side) for side in sides))
                for side in sides:
                    if isinstance(side, Local):
                        holds |= self.address(side).holds
                return Elsewhere(self.kind(sides[0]), holds)
        found_value = self.value(expression)
        return Elsewhere(found_value.type, found_value.holds)

    def kind(self, place: Place) -> CType:
        if isinstance(place, Local):
            kind = self.declared(place.variable)
            for field_name in place.path:
                kind = self.member_type(kind, field_name)
            return kind
        return place.type

    def holds(self, place: Place) -> frozenset[str]:
        """The arrays that a place may be in."""
        if isinstance(place, Memory):
            return place.address.holds
        return place.holds if isinstance(place, Elsewhere) else frozenset()

    def element(self, base: Value, index: Value) -> Place:
        """``base[index]``; also where the two are swapped, as C allows."""
        if not base.type.depth and index.type.depth:
            base, index = index, base
        kind = base.type.pointee
        by = self.distance(index)
        if base.target is not None and not by.terms:
            return base.target
        if base.shape:
            step = kind.size
            row: Polynomial | None = Polynomial.constant(step) if step else None
            for extent in base.shape:
                row = row * extent if row is not None and extent is not None else None
            moved = self._moved(base, by, row)
            return Memory(replace(moved, shape=base.shape, digits=(*base.digits, by)), kind)
        moved = self._moved(base, by, self.stride(base.type))
        return Memory(replace(moved, digits=(*base.digits, by) if base.digits else ()), kind)

    def distance(self, value: Value) -> Polynomial:
        """How far an index moves: addresses wrap as 64-bit numbers do, and it need not."""
        if value.form is not None and value.type.size == 8:
            return value.form
        return self.integer(value)

    def stride(self, kind: CType) -> Polynomial | None:
        """Bytes from one element to the next; a size that is not known is a symbol."""
        size = kind.stride
        if size is not None:
            return Polynomial.constant(size)
        if not kind.name or kind.kind == "void":
            return _ONE if kind.kind == "void" else None
        name = f"sizeof({kind.name})"
        return self.operations.symbols.of(Symbol(name, "scalar", frozenset(), low=1))

    def _moved(self, base: Value, by: Polynomial, stride: Polynomial | None) -> Value:
        pointer = base.pointer
        if pointer is not None:
            offset = None
            if pointer.offset is not None and stride is not None:
                offset = pointer.offset + by * stride
            pointer = Pointer(pointer.array, offset)
        depends = base.depends | self.operations.symbols.depends(by)
        return replace(base, pointer=pointer, depends=depends)

    def _member_place(self, expression: Member) -> Place:
        if expression.arrow:
            inner = self.element(self.value(expression.base), self.number(_ZERO, types.INT))
        else:
            inner = self.place(expression.base)
        name = expression.field
        if isinstance(inner, Local):
            return Local(inner.variable, (*inner.path, name))
        kind = self.member_type(inner.type, name)
        if isinstance(inner, Elsewhere):
            return Elsewhere(kind, inner.holds)
        offset = self.member_offset(inner.type, name)
        address = inner.address
        if address.pointer is not None:
            at = address.pointer.offset
            at = at + Polynomial.constant(offset) if at is not None and offset is not None else None
            address = replace(address, pointer=Pointer(address.pointer.array, at))
        return Memory(address, kind)

    def member_type(self, kind: CType, name: str) -> CType:
        if kind.kind == "vector" and kind.depth == 0:
            return kind.lane
        struct = self.unit.structs.of(kind.name)
        found = struct.field(name) if struct is not None else None
        return found.type if found is not None else types.UNKNOWN

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

    # -- loads and stores

    def load(self, place: Place, node: Expr) -> Value:
        """What a place holds."""
        if isinstance(place, Local):
            return self._load_local(place, node)
        if isinstance(place, Elsewhere):
            self.recorder.touch(place.holds, "load", place.type, self.state.path, node)
            return self.opaque(place.type, frozenset({MEMORY}), place.holds)
        if place.address.shape:  # a row of an array of arrays is an address, not a load
            return replace(place.address, type=place.type.pointer, shape=place.address.shape[1:])
        access = self.recorder.access(place, "load", self.state.path, node)
        kind = place.type
        depends = place.address.depends | {MEMORY}
        if kind.depth:
            return Value(kind, depends | {UNKNOWN}, holds=self._kept(place.address.holds))
        if kind.integral:
            return self._loaded(
                access, access.offset if access is not None else None, kind, depends
            )
        known = kind.kind not in ("record", "unknown")
        holds = frozenset[str]() if known else self._kept(place.address.holds)
        fields = {}
        for name in self.members(kind):
            inner, at = self.member_type(kind, name), self.member_offset(kind, name)
            if (
                inner.integral
                and access is not None
                and access.offset is not None
                and at is not None
            ):
                offset = access.offset + Polynomial.constant(at)
                fields[name] = self._loaded(access, offset, inner, depends)
        return Value(kind, depends, holds=holds, fields=fields or None)

    def _loaded(
        self, access: Access | None, offset: Polynomial | None, kind: CType,
        depends: frozenset[str],
    ) -> Value:  # fmt: skip
        """A whole number from memory; it is the same each time where nobody writes there."""
        index = offset.divided(kind.size) if offset is not None and kind.size else None
        steady = access is not None and access.space == "global" and (
            access.array not in self.recorder.changing
        )  # fmt: skip
        if index is None or access is None or not steady:
            return self.opaque(kind, depends, frozenset())
        low, high = bounds(kind)
        self.recorder.trusted.add(access.array)
        symbol = Symbol(
            f"{access.array}[{index}]:{kind.name}", "load", depends, kind.name,
            (index,), array=access.array, width=kind.size or 0, low=low, high=high,
        )  # fmt: skip
        return Value(kind, depends, self.operations.symbols.of(symbol))

    def _kept(self, arrays: frozenset[str]) -> frozenset[str]:
        """Where the pointers in these arrays may lead: there, or to what was put there."""
        return arrays.union(*(self.recorder.ever(array) for array in arrays))

    @staticmethod
    def leading(value: Value) -> frozenset[str]:
        """The arrays that a value leads to, where it may be kept as an address."""
        held = value.type.depth or value.type.integral or value.fields
        return value.holds if held else frozenset()

    def _keep(self, arrays: frozenset[str], value: Value) -> None:
        """An address is stored: the reading finds it again in arrays of the kernel's own alone."""
        led = self.leading(value)
        known = [self.recorder.arrays.get(array) for array in arrays]
        if led and (not known or any(a is None or a.space == "global" for a in known)):
            self.recorder.unclear |= led
        for array in arrays if led else ():
            self.recorder.give(array, led)

    def _load_local(self, place: Local, node: Expr) -> Value:
        self.recorder.read((place.variable, *place.path), node)
        found: Value | Alias | None = self.state.env.get(place.variable)
        kind = self.kind(place)
        if place.path and (rank := self._rank(place)):
            # Where such an array is kept is the compiler's business: it is memory of its own.
            name = ".".join([place.variable.name, *place.path])
            self.recorder.arrays.setdefault(name, Array(name, "local", kind))
            offset = _ZERO if rank == 1 else None
            return Value(replace(kind, depth=kind.depth + rank), frozenset(),
                         pointer=Pointer(name, offset), holds=frozenset({name}))  # fmt: skip
        for name in place.path:
            if not isinstance(found, Value):
                return self.opaque(kind, frozenset(), frozenset())
            inner = found.fields.get(name) if found.fields is not None else None
            if inner is None:
                form = None
                if kind.integral:
                    form = self.operations.unknown(found.depends, kind)
                depends = found.depends if form is None else found.depends | {UNKNOWN}
                return Value(kind, depends, form, holds=found.holds)
            found = inner
        return found if isinstance(found, Value) else self.opaque(kind, frozenset(), frozenset())

    def _rank(self, place: Local) -> int:
        """How many dimensions a member of a local has: 0 of one that is no array."""
        struct = self.unit.structs.of(self.kind(Local(place.variable, place.path[:-1])).name)
        field = struct.field(place.path[-1]) if struct is not None else None
        return field.rank if field is not None else 0

    def store(self, place: Place, value: Value, node: Expr, written: Expr | None = None) -> None:
        """Put a value into a place; ``written`` is the expression of the value."""
        if isinstance(place, Local):
            self.state.env[place.variable] = self._with(
                self.state.env.get(place.variable), place.path, value, self.kind(place)
            )
            self.recorder.give(place.variable, value.holds)
        elif isinstance(place, Elsewhere):
            self._keep(place.holds, value)
            self.recorder.touch(place.holds, "store", place.type, self.state.path, node)
            self.forget_escaped()
        else:
            self._keep(place.address.holds, value)
            self.recorder.access(place, "store", self.state.path, node, written)
            if place.address.pointer is None:
                self.forget_escaped()

    def _with(
        self, old: Value | Alias | None, path: tuple[str, ...], value: Value, kind: CType
    ) -> Value:
        """A value with the member at the end of ``path`` replaced."""
        if not path:
            return self.convert(value, kind)
        base = old if isinstance(old, Value) else Value()
        fields = dict(base.fields or {})
        inner = fields.get(path[0])
        fields[path[0]] = self._with(inner, path[1:], value, kind)
        return replace(base, fields=fields, holds=base.holds | value.holds,
                       depends=base.depends | value.depends)  # fmt: skip

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

    # -- operators

    def literal(self, expression: Literal) -> Value:
        if expression.text in ("true", "false"):
            return Value(types.BOOL, frozenset(), Polynomial.constant(int(expression.value or 0)),
                         Always(bool(expression.value)))  # fmt: skip
        read = number(expression.text)
        if read is None:
            return Value()
        value, kind = read
        if isinstance(value, int):
            return Value(named(kind, {}), frozenset(), Polynomial.constant(value))
        return Value(named(kind, {}))

    def member(self, expression: Member) -> Value:
        name = builtin(expression)
        if name:
            return self.builtin(name)
        if isinstance(expression.base, Call | Braces) and not expression.arrow:
            made = self.value(expression.base)
            found = (made.fields or {}).get(expression.field)
            if found is not None:
                return found
            kind = self.member_type(made.type, expression.field)
            return self.opaque(kind, made.depends, made.holds)
        return self.load(self.place(expression), expression)

    def builtin(self, name: str) -> Value:
        fixed = self.constants.get(name)
        if fixed is not None:
            return fixed
        width = self.constants.get(name.replace("threadIdx", "blockDim"))
        most = width.form.value if width is not None and width.form is not None else None
        form = self.operations.symbols.builtin(name, most)
        return Value(types.UINT, frozenset({name}), form)

    def unary(self, expression: Unary) -> Value:
        op = expression.op
        if op == "&":
            return self.address(self.place(expression.operand))
        if op == "*":
            return self.load(self.place(expression), expression)
        inner = self.value(expression.operand)
        if op == "!":
            return Value(types.BOOL, inner.depends, truth=~self.truth(inner))
        kind = promoted(inner.type)
        if inner.type.floating or not inner.type.integral:
            return Value(kind, inner.depends)
        form = self.integer(inner) if inner.form is None else inner.form
        form = {"-": -form, "~": -form - _ONE}.get(op, form)
        return self.number(form, kind)

    def address(self, place: Place) -> Value:
        if isinstance(place, Memory):
            return replace(place.address, type=place.type.pointer, shape=(), digits=())
        if isinstance(place, Local):
            # Whoever has the address may change the local behind the back of this reading.
            self.recorder.escaped.add(place.variable)
            kind = self.kind(place)
            found = self.state.env.get(place.variable)
            held = found.holds if isinstance(found, Value) else frozenset[str]()
            return Value(kind.pointer, frozenset({UNKNOWN}), holds=held, target=place)
        return Value(place.type.pointer, frozenset({UNKNOWN}), holds=place.holds)

    def binary(self, expression: Binary) -> Value:
        op = expression.op
        if op == ",":
            self.value(expression.left)
            return self.value(expression.right)
        if op in ("&&", "||"):
            return self._short_circuit(expression)
        left, right = self.value(expression.left), self.value(expression.right)
        return self.combined(op, left, right)

    def combined(self, op: str, left: Value, right: Value) -> Value:
        """``left op right`` of two values."""
        depends = left.depends | right.depends
        holds = left.holds | right.holds
        if op in _COMPARISONS:
            return Value(types.BOOL, depends, truth=self._compared(op, left, right))
        if left.type.depth or right.type.depth:
            return self._pointer_arithmetic(op, left, right)
        shift = op in ("<<", ">>")
        kind = promoted(left.type) if shift else arithmetic(left.type, right.type)
        if not (left.type.integral and right.type.integral):
            if kind.integral or kind.kind == "unknown":
                return self.opaque(kind, depends, holds)
            return Value(kind, depends, holds=holds if kind.size is None else frozenset())
        path = self.state.path
        sides = []
        for side in (left, right):
            form = side.form if side.form is not None else self.integer(side)
            own = promoted(side.type)
            wider = own if shift else kind
            sides.append(self.operations.converted(form, own, wider, path))
        form = self.operations.binary(op, sides[0], sides[1], kind, path)
        if form.value is not None:
            form = self.operations.settled(form, kind, path)
        return replace(self.number(form, kind), holds=holds)

    def _compared(self, op: str, left: Value, right: Value) -> Condition:
        depends = left.depends | right.depends
        if left.type.integral and right.type.integral:
            kind = arithmetic(left.type, right.type)
            path = self.state.path
            sides = []
            for side in (left, right):
                form = self.operations.settled(
                    side.form if side.form is not None else self.integer(side),
                    promoted(side.type), path,
                )  # fmt: skip
                sides.append(self.operations.settled(form, kind, path))
            return self.operations.compared(op, *sides)
        if left.pointer and right.pointer and left.pointer.array == right.pointer.array:
            offsets = left.pointer.offset, right.pointer.offset
            if offsets[0] is not None and offsets[1] is not None:
                return self.operations.compared(op, offsets[0], offsets[1])
        return self.untold(f"a comparison by {op}", depends)

    def _pointer_arithmetic(self, op: str, left: Value, right: Value) -> Value:
        holds = left.holds | right.holds
        depends = left.depends | right.depends
        if op == "-" and left.type.depth and right.type.depth:
            stride = left.type.stride
            if left.pointer and right.pointer and left.pointer.array == right.pointer.array:
                offsets = left.pointer.offset, right.pointer.offset
                if offsets[0] is not None and offsets[1] is not None and stride:
                    apart = (offsets[0] - offsets[1]).divided(stride)
                    if apart is not None:
                        return self.number(apart, types.LONG)
            return self.opaque(types.LONG, depends, frozenset())
        if op in ("+", "-"):
            base, by = (left, right) if left.type.depth else (right, left)
            form = self.distance(by)
            moved = self._moved(base, form if op == "+" else -form, self.stride(base.type))
            return replace(moved, holds=holds, shape=(), digits=())
        kind = left.type if left.type.depth else right.type
        return Value(kind, depends | {UNKNOWN}, holds=holds)

    def _short_circuit(self, expression: Binary) -> Value:
        first = self.condition(expression.left)
        goes_on = first if expression.op == "&&" else ~first
        before = self.state
        self.state = before.fork(goes_on)
        second = self.condition(expression.right)
        changed = self.state
        self.state = State(before.env, before.path, before.alive)
        self.merge_values(goes_on, changed.env, before.env)
        depends = first.depends | second.depends
        if expression.op == "&&":
            return Value(types.BOOL, depends, truth=every((first, second)))
        if isinstance(first, Always) or isinstance(second, Always):
            either = Always(any(isinstance(c, Always) and c.value for c in (first, second)))
            rest = [c for c in (first, second) if not isinstance(c, Always)]
            joined = either if either.value or not rest else rest[0]
            return Value(types.BOOL, depends, truth=joined)
        parts = [c for side in (first, second) for c in (
            side.parts if isinstance(side, Some) else (side,))]  # fmt: skip
        return Value(types.BOOL, depends, truth=Some(tuple(parts)))

    def choice(self, expression: Choice) -> Value:
        test = self.condition(expression.test)
        before = self.state
        self.state = before.fork(test)
        then = self.value(expression.then)
        after_then = self.state.env
        self.state = before.fork(~test)
        other = self.value(expression.other)
        after_other = self.state.env
        self.state = State(after_then, before.path, before.alive)
        self.merge_values(~test, after_other, after_then)
        if isinstance(test, Always):
            return then if test.value else other
        return self.merged(test, then, other)

    def merged(self, test: Condition, then: Value, other: Value) -> Value:
        """``test ? then : other`` of two values."""
        if then == other:
            return then
        depends = then.depends | other.depends | test.depends
        holds = then.holds | other.holds
        kind = then.type if then.type == other.type else (
            then.type if then.type.depth or other.type.depth else arithmetic(then.type, other.type)
        )  # fmt: skip
        if kind.integral:
            if then.truth is not None and other.truth is not None:
                truth = Some((every((test, then.truth)), every((~test, other.truth))))
                return Value(kind, depends, truth=truth)
            if isinstance(test, Untold):
                return self.opaque(kind, depends, holds)
            form = self.operations.select(test, self.integer(then), self.integer(other))
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

    def cast(self, expression: Cast) -> Value:
        if "&" in expression.type:
            return self.load(self.place(expression), expression)
        inner = self.value(expression.operand)
        return self.convert(inner, self.type(expression.type))

    def assign(self, expression: Assign) -> Value:
        place = self.place(expression.target)
        kind = self.kind(place)
        self.recorder.update(place, expression, self)
        if expression.op == "=":
            value = self.value(expression.value)
        else:
            old = self.load(place, expression.target)
            value = self.combined(expression.op[:-1], old, self.value(expression.value))
        self.types[expression.target] = kind
        value = self.convert(value, kind)
        self.store(place, value, expression, expression.value)
        self.recorder.done(expression)
        return value

    def step(self, expression: Step) -> Value:
        place = self.place(expression.target)
        self.recorder.update(place, expression, self)
        old = self.load(place, expression.target)
        one = self.number(_ONE, types.INT)
        new = self.convert(self.combined(expression.op[0], old, one), self.kind(place))
        self.store(place, new, expression)
        self.recorder.done(expression)
        return new if expression.prefix else old

    def braces(self, expression: Braces) -> Value:
        values = [self.value(member) for member in expression.members]
        kind = self.type(expression.type) if expression.type else types.UNKNOWN
        if len(values) == 1 and kind.kind not in ("vector", "record", "unknown"):
            return self.convert(values[0], kind)
        return self.gathered(kind, values)

    def gathered(self, kind: CType, values: list[Value]) -> Value:
        """A vector or a struct made of its members."""
        depends = frozenset[str]().union(*(v.depends for v in values))
        holds = frozenset[str]().union(*(v.holds for v in values))
        names = self.members(kind)
        fields = dict(zip(names, values, strict=False))
        return Value(kind, depends, holds=holds, fields=fields)

    def closure(self, expression: Lambda) -> Value:
        """A lambda: where it goes a way that is not followed, all it mentions may be changed."""
        held: frozenset[str] = frozenset()
        captured: dict[Variable, Value | Alias] = {}
        for mention in expression.mentions:
            if not isinstance(mention, Name) or mention.variable is None:
                continue
            found = self.state.env.get(mention.variable)
            if found is not None and expression.copies:
                captured[mention.variable] = found
            held |= self.holds(found.place) if isinstance(found, Alias) else frozenset()
            held |= found.holds if isinstance(found, Value) else frozenset()
        return Value(types.UNKNOWN, frozenset({UNKNOWN}), holds=held,
                     closure=Closure(expression, captured))  # fmt: skip

    def disturb(self, mentions: tuple[Expr, ...], node: Expr | None = None) -> None:
        """Anything may have been done with what is mentioned."""
        for mention in mentions:
            if not isinstance(mention, Name):
                continue
            if mention.variable is None:
                if mention.name in self.recorder.arrays:
                    self.recorder.unclear.add(mention.name)
                continue
            self.forget(mention.variable, node or mention)

    def forget_escaped(self) -> None:
        """Somebody may have written to the locals whose addresses were taken."""
        for variable in self.recorder.escaped & self.state.env.keys():
            self.forget(variable, None)

    def forget(self, variable: Variable, node: Expr | None) -> None:
        """A local may have changed in a way that is not followed, and what it leads to as well."""
        found = self.state.env.get(variable)
        if isinstance(found, Alias):
            self.recorder.unclear |= self.holds(found.place)
            if isinstance(found.place, Local):
                self.forget(found.place.variable, node)
            return
        kind = self.declared(variable)
        holds = found.holds if isinstance(found, Value) else frozenset[str]()
        holds |= self.recorder.ever(variable)
        self.recorder.unclear |= holds
        if isinstance(found, Value) and found.closure is not None:  # it may be called
            self.state.env[variable] = replace(found, closure=None)
            self.disturb(found.closure.made.mentions, node)
        self.recorder.write((variable,), node)
        if variable.array or (isinstance(found, Value) and found.shape):
            return
        self.state.env[variable] = self.opaque(kind, frozenset(), holds)

    def call(self, expression: Call) -> Value:
        raise NotImplementedError
