"""Expressions followed through a kernel: what each is worth, and the accesses it makes.

One walk in the order of execution, on values that are forms over threads, counters and sizes
(symbolic execution; King, CACM 1976). What is not followed is unknown, never a constant.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from optiml_magic.kernels import types
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
from optiml_magic.kernels.literals import number
from optiml_magic.kernels.memory import MemoryWalker
from optiml_magic.kernels.merging import State
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Rest
from optiml_magic.kernels.symbols import UNKNOWN, Always, Condition, Some, every
from optiml_magic.kernels.tree import Variable
from optiml_magic.kernels.types import arithmetic, named, promoted
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
class Evaluator(MemoryWalker):
    """Evaluates expressions in ``state`` and records what they do."""

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

    def _member_place(self, expression: Member) -> Place:
        if expression.arrow:
            base = self.value(expression.base)
            inner = self.element(base, self.number(_ZERO, types.INT))
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
        if extents := self.member_extents(inner.type, name):
            # Its digits are beside those of the array that the structure is in.
            digits = (*address.digits, _ZERO)
            shape = tuple(map(Polynomial.constant, extents))
            address = replace(address, shape=shape, digits=digits)
        return Memory(address, kind)

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
        base = expression.base
        known = isinstance(base, Name) and base.variable is None and self.constants.get(base.name)
        if (known or isinstance(base, Call | Braces)) and not expression.arrow:
            made = self.value(base)
            found = (made.fields or {}).get(expression.field)
            if found is not None:
                return found
            kind = self.member_type(made.type, expression.field)
            return self.opaque(kind, made.depends, made.holds)
        return self.load(self.place(expression), expression)

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

    def binary(self, expression: Binary) -> Value:
        op = expression.op
        if op == ",":
            self.value(expression.left)
            return self.value(expression.right)
        if op in ("&&", "||"):
            return self._short_circuit(expression)
        left, right = self.value(expression.left), self.value(expression.right)
        if op == "%" and left.form is not None and right.form is not None:
            alike = promoted(left.type) == promoted(right.type)
            rest = Rest(left.form, right.form, tuple(self.state.path))
            self.recorder.rests.setdefault(expression, []).append(rest if alike else None)
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
            return self.operations.within(op, *sides) or self.operations.compared(op, *sides)
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
            kind = self.common(then.type, other.type)
            return self.convert(then if test.value else other, kind)
        return self.merged(test, then, other)

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

    def call(self, expression: Call) -> Value:
        raise NotImplementedError
