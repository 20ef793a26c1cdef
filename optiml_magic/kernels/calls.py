"""Calls: what CUDA's functions do, and functions of the text looked through."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from optiml_magic.kernels import groups, methods, types
from optiml_magic.kernels.expressions import Call, Expr, Lambda, Name, Unary
from optiml_magic.kernels.functions import (
    ASSUMING,
    BLOCK_BARRIERS,
    CONVERTING,
    HARMLESS,
    LANES,
    PRODUCTS,
    READERS,
    USES,
    WARP_BARRIERS,
    WRITERS,
    Use,
    atomic,
    bare,
    pure,
)
from optiml_magic.kernels.merging import State
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.reading import Barrier
from optiml_magic.kernels.standing import GroupEvaluator
from optiml_magic.kernels.swapping import swapping
from optiml_magic.kernels.symbols import MEMORY, UNKNOWN, every
from optiml_magic.kernels.tree import Function, Statement, Variable
from optiml_magic.kernels.types import CType
from optiml_magic.kernels.values import Alias, Elsewhere, Local, Memory, Value

_ZERO = Polynomial()
_DEEPEST = 6


@dataclass
class _Frame:
    """One call that is being looked through: where it returned, and with what."""

    function: Function
    rounds: int
    returns: list[tuple[State, Value]] = field(default_factory=list)


@dataclass
class CallEvaluator(GroupEvaluator):
    """Evaluates calls."""

    frames: list[_Frame] = field(default_factory=list)

    def call(self, expression: Call) -> Value:
        name = bare(expression.function)
        self.recorder.calls.add(name)
        if expression.callee is not None:
            closure = self.value(expression.callee).closure
            if closure is not None and self._takes(closure.made.function, expression):
                return self._entered(closure.made.function, expression, closure.captured)
            inner = self._looked_through(expression.callee, "operator()", expression)
            return inner or self._unknown(expression)
        if name == "sizeof":
            return self._sizeof(expression)
        if expression.receiver is not None:
            return self._method(expression, name)
        if name in BLOCK_BARRIERS or name in WARP_BARRIERS:
            for argument in expression.arguments:
                self.value(argument)
            self.barrier("warp" if name in WARP_BARRIERS else "block", expression)
            return Value(types.INT, frozenset({UNKNOWN}))
        functions = self.unit.called(expression.function, len(expression.arguments))
        if len(functions) == 1 and (operation := swapping(functions[0])) is not None:
            return self._atomic(expression, operation)
        if not functions:
            known = self._known(expression, name)
            if known is not None:
                return known
        elif len(functions) == 1 and self._may_enter(functions[0]):
            return self._entered(functions[0], expression)
        return self._unknown(expression)

    def barrier(self, scope: str, node: Expr) -> None:
        recorder = self.recorder
        kind = scope if scope in ("block", "warp") else "other"
        recorder.barriers.append(
            Barrier(kind, self.state.path, recorder.loops, recorder.line_of(node))  # type: ignore[arg-type]
        )

    def _sizeof(self, expression: Call) -> Value:
        if expression.template:
            kind = self.type(expression.template[0])
            size = 8 if kind.depth else kind.size
        else:
            size = None
            for argument in expression.arguments:
                if isinstance(argument, Name) and argument.variable and not argument.variable.array:
                    size = self.declared(argument.variable).size
        if size is None:
            return self.opaque(types.SIZE, frozenset(), frozenset())
        return self.number(Polynomial.constant(size), types.SIZE)

    def _known(self, expression: Call, name: str) -> Value | None:
        """What a function of CUDA's headers does; None for any other."""
        arguments = expression.arguments
        operation = atomic(name)
        if operation is not None and arguments:
            return self._atomic(expression, operation)
        if READERS.fullmatch(name) and arguments:
            address = self.value(arguments[0])
            return self.load(self.element(address, self.number(_ZERO, types.INT)),
                             expression)  # fmt: skip
        if WRITERS.fullmatch(name) and len(arguments) > 1:
            address, value = self.value(arguments[0]), self.value(arguments[1])
            place = self.element(address, self.number(_ZERO, types.INT))
            self.store(place, value, expression, arguments[1])
            return Value(types.VOID)
        if name in USES:
            return self._used(expression, USES[name])
        if name in ASSUMING and arguments:
            return self.value(arguments[0])
        if CONVERTING.fullmatch(name) and arguments:
            address = self.value(arguments[0])
            return self.opaque(types.SIZE, address.depends, address.holds)
        if name == "swap" and len(arguments) == 2:
            return self._swap(expression)
        if name in PRODUCTS and len(arguments) == 2:
            left, right = (self.value(argument) for argument in arguments)
            return self.combined("*", left, right)
        if (group := groups.made(expression)) is not None:
            for argument in arguments:
                self.value(argument)
            return Value(CType(group, "record"))
        if name in ("min", "max", "umin", "umax", "llmin", "llmax") and len(arguments) == 2:
            return self._extreme(name[-3:], expression)
        kind = self.type(name)
        if kind.kind not in ("record", "unknown"):
            values = [self.value(argument) for argument in arguments]
            if kind.kind != "vector" and len(values) == 1:
                return self.convert(values[0], kind)
            return self.gathered(kind, values)
        if name.startswith("make_"):
            return self.gathered(self.type(name[5:]), [self.value(a) for a in arguments])
        if LANES.fullmatch(name):
            values = [self.value(argument) for argument in arguments]
            depends = frozenset[str]().union(*(v.depends for v in values)) | {UNKNOWN}
            own = values[1].type if "shfl" in name and len(values) > 1 else types.UINT
            return self.opaque(own, depends, frozenset())
        if HARMLESS.fullmatch(name) or pure(name):
            return self._computed(name, [self.value(argument) for argument in arguments])
        return None

    def _computed(self, name: str, values: list[Value]) -> Value:
        depends = frozenset[str]().union(*(v.depends for v in values))
        if name in ("abs", "labs", "llabs") and values and values[0].type.integral:
            form = self.integer(values[0])
            if not self.operations.nonnegative(form, self.state.path):
                form = self.operations.operation("abs", (form,), low=0)
            return self.number(form, values[0].type)
        if name.startswith(("isnan", "isinf", "isfinite", "signbit")):
            return Value(types.BOOL, depends, truth=self.untold(name, depends))
        if (
            name.startswith(("__popc", "__clz", "__ffs", "lround", "lrint", "llr"))
            or "2int" in name
        ):
            return self.opaque(types.INT, depends, frozenset())
        if values and all(v.type.floating for v in values):
            kind = values[0].type
            for value in values[1:]:
                kind = types.arithmetic(kind, value.type)
            return Value(types.FLOAT if name.endswith("f") and kind.size == 8 else kind, depends)
        if name.endswith("f") or name.startswith("__"):
            return Value(types.FLOAT if name.endswith("f") else types.UNKNOWN, depends)
        if values and all(v.type.integral for v in values):
            integral = name.startswith(("u", "mul", "clamp", "sign"))
            return self.opaque(types.INT, depends, frozenset()) if integral else Value(
                types.DOUBLE, depends)  # fmt: skip
        return Value(values[0].type if values else types.UNKNOWN, depends)

    def _extreme(self, op: str, expression: Call) -> Value:
        left, right = (self.value(argument) for argument in expression.arguments)
        kind = types.arithmetic(left.type, right.type)
        if not kind.integral:
            return Value(kind, left.depends | right.depends)
        form = self.operations.extreme(op, self.integer(left), self.integer(right), self.state.path)
        return self.number(form, kind)

    def _atomic(self, expression: Call, operation: str) -> Value:
        address, *_ = [self.value(argument) for argument in expression.arguments]
        place = self.element(address, self.number(_ZERO, types.INT))
        value = expression.arguments[1] if len(expression.arguments) > 1 else None
        if isinstance(place, Memory):
            self.recorder.access(place, "atomic", self.state.path, expression, value, operation)
        return self.opaque(address.type.pointee, frozenset({MEMORY}), frozenset())

    def _used(self, expression: Call, uses: tuple[Use, ...]) -> Value:
        for at, argument in enumerate(expression.arguments):
            value = self.value(argument)
            use = uses[at] if at < len(uses) else "value"
            if use in ("read", "both"):
                self.recorder.touch(value.holds, "load", value.type.pointee, self.state.path,
                                    expression)  # fmt: skip
            if use in ("write", "both"):
                self.recorder.touch(value.holds, "store", value.type.pointee, self.state.path,
                                    expression)  # fmt: skip
        return Value(types.VOID)

    def _swap(self, expression: Call) -> Value:
        places = [self.place(argument) for argument in expression.arguments]
        values = [self.load(p, a) for p, a in zip(places, expression.arguments, strict=True)]
        for place, value in zip(places, reversed(values), strict=True):
            self.store(place, value, expression)
            if isinstance(place, Local):
                self.recorder.write((place.variable, *place.path), expression)
        return Value(types.VOID)

    def _method(self, expression: Call, name: str) -> Value:
        """A member function: of a group it may be a barrier; of anything else nothing is known."""
        assert expression.receiver is not None
        if (inner := self._looked_through(expression.receiver, name, expression)) is not None:
            return inner
        receiver = self.value(expression.receiver)
        values = [self.value(argument) for argument in expression.arguments]
        if name in groups.SYNCS:
            tile = groups.tile_size(receiver.type.name) is not None
            block = groups.is_block(receiver.type.name)
            self.barrier("block" if block else "warp" if tile else "other", expression)
        standing = self.standing(receiver.type.name, name)
        if standing is not None:
            return standing
        held = receiver.holds
        self.recorder.unclear |= held | methods.outside(self.unit, name)
        for argument, value in zip(expression.arguments, values, strict=True):
            self.recorder.unclear |= value.holds
            self._passed(argument)
        own = expression.receiver
        if isinstance(own, Name) and own.variable is not None and receiver.type.kind != "vector":
            self.recorder.write((own.variable,), expression)
        return self.opaque(types.UNKNOWN, receiver.depends, held)

    def _looked_through(self, place: Expr, name: str, call: Call) -> Value | None:
        """What a method of a variable does, or one that changes its object in memory; or None."""
        own, found, captured = place, None, dict[Variable, Value | Alias]()
        kind = types.UNKNOWN
        if not call.arrow and isinstance(place, Name) and place.variable is not None:
            kind = self.declared(place.variable)
        elif methods.changes_an_element(self.unit, name, call.arguments):
            found = self.place(Unary(None, "*", place) if call.arrow else place)
            kind = found.type if isinstance(found, Memory) else kind
            own = object_ = methods.object_of(kind.name)
            captured |= {object_.variable: Alias(found)} if object_.variable is not None else {}
        method = None
        if isinstance(own, Name):
            method = methods.method_of(self.unit, own, name, len(call.arguments), kind)
        if method is not None and self._may_enter(method):
            return self._entered(method, call, captured)
        self.recorder.unclear |= self.holds(found) if found is not None else frozenset()
        return None

    def _unknown(self, expression: Call) -> Value:
        """A function that is not seen: it may do anything with what it gets a pointer to."""
        depends: frozenset[str] = frozenset()
        held: frozenset[str] = frozenset()
        if isinstance(expression.callee, Name) and expression.callee.variable is not None:
            self.forget(expression.callee.variable, expression)
        elif isinstance(expression.callee, Lambda):
            self.disturb(expression.callee.mentions, expression)
        for at, argument in enumerate(expression.arguments):
            value = self.value(argument)
            depends |= value.depends
            held |= value.holds
            if value.target is not None:
                self.forget(value.target.variable, argument)
            elif self.may_change(expression, at):
                self._passed(argument)
        self.recorder.unclear |= held
        self.forget_escaped()
        self.refer(expression.function, expression.arguments)
        return self.opaque(types.UNKNOWN, depends, held)

    def refer(self, made: str, arguments: tuple[Expr, ...]) -> None:
        """An object may keep references to what it is made from, as ``atomic_ref`` does."""
        name = bare(made.partition("<")[0].strip())
        functions = self.unit.called(name, len(arguments))
        for at, argument in enumerate(arguments):
            if name.endswith("_ref") or any(f.parameters[at].type.reference for f in functions):
                self.recorder.unclear |= self.holds(self.place(argument))

    def may_change(self, call: Call, at: int) -> bool:
        """Whether a call may change the local that is its argument, or its object."""
        if at == methods.OBJECT:
            return methods.changes_its_object(self.unit, call)
        name = bare(call.function)
        functions = self.unit.called(call.function, len(call.arguments))
        if functions:
            return any(
                at >= len(f.parameters) or f.parameters[at].type.reference for f in functions
            )
        known = atomic(name) is not None or pure(name) or HARMLESS.fullmatch(name) is not None
        return not (
            known or name in BLOCK_BARRIERS or LANES.fullmatch(name) or name == "sizeof"
            or name.startswith(("__ld", "__st", "make_")) or name in PRODUCTS
            or self.type(name).kind not in ("record", "unknown")
        )  # fmt: skip

    def _passed(self, argument: Expr) -> None:
        """An argument of an unseen function: a reference to it may be taken."""
        if isinstance(argument, Unary) and argument.op == "&":
            argument = argument.operand
        place = self.place(argument) if isinstance(argument, Name) else None
        if isinstance(place, Local):
            self.forget(place.variable, argument)
        elif place is not None:
            self.recorder.unclear |= self.holds(place)

    # -- functions of the text

    def _may_enter(self, function: Function) -> bool:
        entered = [frame.function for frame in self.frames]
        return len(entered) < _DEEPEST and function not in entered and not function.method

    def _takes(self, function: Function, expression: Call) -> bool:
        count = len(expression.arguments)
        fits = function.required <= count <= len(function.parameters)
        return fits and self._may_enter(function)

    def _entered(
        self, function: Function, expression: Call,
        captured: Mapping[Variable, Value | Alias] = MappingProxyType({}),
    ) -> Value:  # fmt: skip
        """Run the body of a function on these arguments."""
        caller = self.state
        names, constants = self.names, self.constants
        bound: dict[Variable, Value | Alias] = {}
        for formal, argument in zip(function.parameters, expression.arguments, strict=False):
            if formal.type.reference and not self.unit.makes(argument):
                bound[formal] = Alias(self.place(argument))
            else:
                bound[formal] = self.value(argument)
        for formal in function.parameters[len(expression.arguments) :]:
            default = self.declared(formal)
            bound[formal] = self.opaque(default, frozenset(), frozenset())
        given = [
            text if value is None else self.value(value)
            for text, value in zip(expression.template, expression.values, strict=True)
        ]
        inner_names, inner_constants = self.unit.instantiated(
            function, given, names, constants, bound
        )
        self.names, self.constants = inner_names, inner_constants
        for formal, value in bound.items():
            if isinstance(value, Value):
                bound[formal] = self.convert(value, self.declared(formal))
        frame = _Frame(function, self.open_rounds())
        self.frames.append(frame)
        outer, self.recorder.calling = self.recorder.calling, self.recorder.calling or expression
        # Locals of the function begin anew at each call.
        self.state = State({**self.state.env, **captured, **bound}, caller.path)
        self.run(function.body)
        ends = [*frame.returns]
        if self.state.alive or not ends:
            ends.append((self.state, Value(types.VOID)))
        self.frames.pop()
        self.recorder.calling = outer
        result = self.type(function.result.base)
        self.names, self.constants = names, constants
        value = self._returned(caller, ends, result, function)
        for variable in captured:  # the function had copies of its own
            if variable in caller.env:
                self.state.env[variable] = caller.env[variable]
        return value

    def _returned(
        self, caller: State, ends: list[tuple[State, Value]], kind: CType, function: Function
    ) -> Value:
        """The state and the value after a call: those of its ends, each where it was taken."""
        state, value = ends[-1]
        for other, its_value in reversed(ends[:-1]):
            test = every(other.path[len(caller.path) :])
            self.merge_values(test, other.env, state.env)
            value = self.merged(test, its_value, value)
        self.state = State(
            {v: state.env[v] for v in state.env if v in caller.env}, caller.path, caller.alive
        )
        wanted = replace(kind, depth=kind.depth + function.result.depth)
        if function.result.reference:
            return replace(value, type=wanted if wanted.kind != "unknown" else value.type)
        return self.convert(value, wanted) if wanted.kind not in ("void", "unknown") else value

    def run(self, statement: Statement) -> None:
        raise NotImplementedError

    def open_rounds(self) -> int:
        """How many loops are being read."""
        raise NotImplementedError


__all__ = ["CallEvaluator", "Elsewhere"]
