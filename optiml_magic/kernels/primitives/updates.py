"""Atomic operations that only add up: which arrays a kernel touches in no other way, and how.

Nobody asks what such an operation returns, and all of them on one array combine alike, so they may
be done in any order and in parts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from optiml_magic.kernels.editing import Swaps
from optiml_magic.kernels.expressions import Binary, Call, Cast, Expr, Index, Literal, Name, Unary
from optiml_magic.kernels.functions import ATOMICS
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives import combine
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.stepwise import is_read
from optiml_magic.kernels.reading import Access, Reduction, Space
from optiml_magic.kernels.swapping import swapping
from optiml_magic.kernels.symbols import THREADS, Compare
from optiml_magic.kernels.tree import Evaluate, Leave, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import CType, named

_GLOBAL: tuple[Space, ...] = ("global",)
_ORDER = ("+", "min", "max", "&", "|", "^")
_LITTLE = 16  # what an update counts by, at most, so that a block's sum does not wrap: ours
_FUNCTIONS = {"+": "Add", "min": "Min", "max": "Max", "&": "And", "|": "Or", "^": "Xor"}
_NAMES = {
    (4, True): "int", (4, False): "unsigned int",
    (8, True): "long long", (8, False): "unsigned long long",
}  # fmt: skip
_LEAST = {"int": "(-2147483647 - 1)", "long long": "(-9223372036854775807LL - 1)"}
_MOST = {"int": "2147483647", "long long": "9223372036854775807LL"}


@dataclass(frozen=True, eq=False)
class Update:
    """One such statement: ``index`` is what stands in the text for the element."""

    access: Access
    statement: Evaluate
    index: Expr
    value: Expr
    negative: bool  # of ``atomicSub``


@dataclass(frozen=True, eq=False)
class Updated:
    """An array that is only updated, all its elements by one operation ``op``."""

    array: str
    op: str
    type: CType
    updates: tuple[Update, ...]
    #: The program's own function that does it, where CUDA has none for these numbers.
    own: str = ""

    @property
    def kind(self) -> str:
        """The element's type, as atomic functions call it."""
        plain = (self.type.size or 0, self.type.signed)
        return _NAMES[plain] if self.type.integral else self.type.name

    @property
    def exact(self) -> bool:
        return self.type.integral

    @property
    def little(self) -> bool:
        """Whether it counts up by so little that what a block counts does not wrap."""
        return self.op == "+" and all(
            isinstance(u.value, Literal) and 0 <= (u.value.value or 0) <= _LITTLE and not u.negative
            for u in self.updates
        )

    @property
    def identity(self) -> str:
        """What changes nothing when it is combined."""
        if self.op in ("min", "max"):
            if self.type.floating:
                return combine.nothing(self.reduction)
            if self.type.signed:
                return (_MOST if self.op == "min" else _LEAST)[self.kind]
            return f"({self.kind})-1" if self.op == "min" else "0"
        if self.op == "&":
            return f"({self.kind})-1"
        return {"float": "0.0f", "double": "0.0"}.get(self.kind, "0")

    @property
    def function(self) -> str:
        """The atomic function that does it."""
        return self.own or f"atomic{_FUNCTIONS[self.op]}"

    @property
    def reduction(self) -> Reduction:
        """The same, as one that the lanes of a block combine."""
        return Reduction(self.array, self.op, (), None, (), self.type, self.updates[0].access.line)

    def combining(self, place: str, value: str) -> str:
        """The statement that combines a value into a place of the thread's own."""
        if self.op in ("min", "max"):
            return f"{place} = {self.op}({place}, {value});"
        return f"{place} {self.op}= {value};"


def updated(
    kernel: Kernel,
    within: Statement | None = None,
    spaces: Collection[Space] = _GLOBAL,
    *,
    apart: bool = False,
) -> Iterator[Updated | Refused]:
    """The arrays in these kinds of memory on which atomic operations do nothing but combine.

    It is asked of the whole kernel, or of what is done ``within`` a statement. ``apart``: an array
    comes once for each operation, where none is done to an element of another.
    """
    effects = Effects(kernel)
    arrays: dict[tuple[str, str], list[Access]] = {}
    inside = effects.inside(within) if within is not None else None
    asked = [a for a in kernel.reading.accesses if inside is None or a.own in inside]
    for access in asked:
        if access.mode == "atomic" and access.space in spaces:
            op = _combines(access) if apart else ""
            arrays.setdefault((access.array, op), []).append(access)
    for (array, _), found in arrays.items():
        try:
            yield _updated(kernel, effects, array, found, asked)
        except NotLegal as reason:
            yield Refused(reason.reason, reason.line or found[0].line)


def commuting(kernel: Kernel, within: Statement | None = None) -> frozenset[Access]:
    """The atomic operations that may be done in any order, also those on members of elements.

    Nobody asks what they return, and nothing else is done to their arrays.
    """
    effects, found = Effects(kernel), set[Access]()
    inside = effects.inside(within) if within is not None else None
    asked = [a for a in kernel.reading.accesses if inside is None or a.own in inside]
    for array in dict.fromkeys(a.array for a in asked if a.mode == "atomic" and a.array):
        own = [a for a in asked if effects.same(a.array, array)]
        ops = {"+" if a.op == "-" else a.op for a in own}
        alike = len(ops) == 1 == len({a.element.name for a in own}) and ops <= {*_ORDER}
        if alike and all(_unasked(effects, a, array) for a in own):
            found |= {*own}
    return frozenset(found)


def _unasked(effects: Effects, access: Access, array: str) -> bool:
    call = access.node
    return (
        access.mode == "atomic" and access.array == array and access.call is None
        and access.own in effects.unasked and isinstance(call, Call)
        and call.function in ATOMICS and len(call.arguments) == 2 and not call.template
    )  # fmt: skip


def converted(kernel: Kernel, found: Updated, update: Update, swaps: Swaps | None = None) -> str:
    """The value of an update, as the type that the atomic function takes."""
    shown = kernel.spelled(update.value, swaps)
    loose = not isinstance(update.value, Name | Literal | Call | Index)
    own = kernel.reading.types.get(update.value)
    same = own is not None and own.name in (found.type.name, found.kind)
    whole = f"({shown})" if loose and not (same and not update.negative) else shown
    whole = whole if same else f"({found.kind}){whole}"
    return f"-{whole}" if update.negative else whole


def _updated(
    kernel: Kernel, effects: Effects, array: str, found: list[Access], asked: Iterable[Access]
) -> Updated:
    kinds = [named(p.type.base, kernel.unit.aliases) for p in kernel.function.parameters
             if p.name == array and p.type.depth == 1]  # fmt: skip
    own = kernel.reading.arrays.get(array)
    if own is not None and own.space == "shared" and not own.dynamic:
        kinds = [own.element]
    if not kinds or array in effects.moved:
        raise NotLegal(f"`{array}` is not a parameter that stays what it is")
    for other in asked:
        if other.array == array and _elsewhere(kernel, other, found):
            continue
        if other.mode != "atomic" and effects.same(other.array, array):
            raise NotLegal(f"`{array}` is touched in another way as well", other.line)
        if other.array != array and effects.same(other.array, array):
            raise NotLegal(f"`{array}` has another name as well", other.line)
    ops = {_combines(a) for a in asked if a.mode == "atomic" and a.array == array
           and (a in found or not _elsewhere(kernel, a, found))}  # fmt: skip
    op = next(iter(ops))
    if len(ops) != 1 or op not in _ORDER:
        raise NotLegal(f"the order of what is done to `{array}` matters")
    kind = kinds[0]
    whole = kind.integral and kind.kind == "int" and kind.size in (4, 8)
    floats = kind.name in ("float", "double")
    plain = whole or (floats and op in ("+", "min", "max"))
    if kind.lanes != 1 or not plain:
        raise NotLegal(f"`{kind.name or array}` is not a number that can be combined in parts")
    by_call = {
        e: s
        for s in walk(kernel.function.body)
        if isinstance(s, Evaluate) and isinstance(e := _bare(s.expression), Call)
    }
    updates = tuple(_update(effects, a, kind, by_call) for a in found)
    called = {u.access.node.function for u in updates if isinstance(u.access.node, Call)}
    others = called - {*ATOMICS} if floats and op != "+" else set[str]()
    if len(others) > 1:
        raise NotLegal(f"several functions update `{array}`", found[0].line)
    return Updated(array, op, kind, updates, next(iter(others), ""))


def _combines(access: Access) -> str:
    return "+" if access.op == "-" else access.op


def _elsewhere(kernel: Kernel, other: Access, found: Iterable[Access]) -> bool:
    """Whether an access is to an element that no thread updates, as ``a[0]`` beside ``a[1]``."""
    symbols = kernel.reading.symbols

    def one(access: Access) -> Polynomial | None:
        form = access.index
        if form is None or access.element != other.element:
            return None
        return form if all(symbols[n].kind == "scalar" for n in symbols.inside(form)) else None

    place, places = one(other), [one(access) for access in found]
    return place is not None and all(p is not None and (p - place).value for p in places)


def _update(effects: Effects, access: Access, kind: CType, by_call: dict[Call, Evaluate]) -> Update:
    call = access.node
    if access.call is not None:
        raise NotLegal("a function updates for it", access.line)
    if not isinstance(call, Call) or call not in by_call:
        raise NotLegal("what an atomic operation returns is used", access.line)
    statement = by_call[call]
    functions = effects.kernel.unit.called(call.function, len(call.arguments))
    repeated = len(functions) == 1 and swapping(functions[0]) is not None
    if (call.function not in ATOMICS and not repeated) or len(call.arguments) != 2 or call.template:
        raise NotLegal(f"`{call.function}` is seen beyond the device", access.line)
    if access.element.name != kind.name:
        raise NotLegal(f"`{access.array}` is updated as another type", access.line)
    inside = effects.inside(statement)
    others = [a for a in effects.reading.accesses
              if a.own in inside and a is not access and a.mode != "load"]  # fmt: skip
    changed = {v for v in effects.changed(statement)
               if v.storage != "shared" or v.name != access.array}  # fmt: skip
    if others or changed:
        raise NotLegal("an update changes something else, too", access.line)
    given = effects.kernel.function.parameters
    steady = effects.lasting | {p for p in given if p.name not in effects.moved}
    index = _index(call.arguments[0], access.array, steady)
    if index is None:
        raise NotLegal(f"which element of `{access.array}` is updated is not read", access.line)
    return Update(access, statement, index, call.arguments[1], access.op == "-")


def _bare(expr: Expr) -> Expr:
    """An expression whose value is dropped, as ``(void)`` says."""
    return expr.operand if isinstance(expr, Cast) and expr.type == "void" else expr


def _index(address: Expr, array: str, steady: AbstractSet[Variable]) -> Expr | None:
    """Which element an address is of; pointers that keep what they begin with are followed."""

    def of(pointer: Expr) -> Expr | None:
        return _index(pointer, array, steady)

    match address:
        case Name(name=name, variable=Variable(value=value) as own) if own in steady and value:
            return of(value) if own.type.depth == 1 and names([value]) <= steady else None
        case Name(name=name) if name == array:
            return Literal(None, "0", 0)
        case Unary(op="&", operand=Name(name=name)) if name == array:  # of one without extents
            return Literal(None, "0", 0)
        case Unary(op="&", operand=Index(base=base, index=index)):
            return _plus(of(base), index)
        case Unary(op="&", operand=Unary(op="*", operand=inner)):
            return of(inner)
        case Binary(op="+", left=left, right=right):
            first = of(left)
            return _plus(first, right) if first is not None else _plus(of(right), left)
    return None


def _plus(first: Expr | None, then: Expr) -> Expr | None:
    match first:
        case None:
            return None
        case Literal(value=0):
            return then
    return Binary(None, "+", first, then)


def fixed(kernel: Kernel, form: Polynomial | None) -> bool:
    """Whether an element is the same one for all threads of a block, in every round."""
    if form is None:
        return False
    symbols = kernel.reading.symbols
    return all(
        symbols[name].kind in ("scalar", "operation")
        or (symbols[name].kind == "builtin" and not name.startswith("threadIdx"))
        for name in symbols.inside(form)
    ) and kernel.reading.uniform(form)


def by_few(kernel: Kernel, update: Update) -> bool:
    """Whether a thread's place in its block decides who updates: one of a warp, or of a block."""
    symbols = kernel.reading.symbols
    for condition in update.access.guard:
        for part in condition.conjuncts():
            names = symbols.inside(part.form) if isinstance(part, Compare) else frozenset[str]()
            own = {n for n in names if symbols[n].kind != "operation"}
            if own and own <= THREADS:
                return True
    return False


def leaves(statement: Statement) -> int:
    """The line of the first way out of a kernel; 0 where there is none."""
    found = (s.line for s in walk(statement) if isinstance(s, Leave) and s.kind == "return")
    return next(found, 0)


def elements_alone(kernel: Kernel, arrays: Collection[str]) -> None:
    """Raise NotLegal where one of these is named for more than an element: ``sizeof(own)``."""
    touched = set[Expr | None]()
    for access in kernel.reading.accesses:
        node = access.node
        place = node.arguments[0] if isinstance(node, Call) and node.arguments else node
        touched.add(_named(getattr(node, "target", place), access.array))
    for name in expressions(kernel.function.body):
        if not isinstance(name, Name) or name.name not in arrays:
            continue
        if name not in touched or name.variable is None or not is_read(kernel, name.variable):
            raise NotLegal(f"`{name.name}` is asked for as a whole")


def _named(place: Expr, array: str) -> Expr | None:
    """Where an address, or an element, has the name of its array."""
    match bare(place):
        case Name(name=name) as found if name == array:
            return found
        case Unary(op="&" | "*", operand=inner) | Index(base=inner):
            return _named(inner, array)
        case Binary(op="+", left=left, right=right):
            return _named(left, array) or _named(right, array)
    return None
