"""Member functions of the structures of a text: looked through where they are of one variable."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from functools import lru_cache

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Cast,
    Expr,
    Index,
    Lambda,
    Member,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Function,
    Leave,
    TypeName,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType, named
from optiml_magic.kernels.unit import Unit

#: The place of an object among the arguments of its method.
OBJECT = -1


def method_of(
    unit: Unit, place: Name, name: str, count: int, kind: CType, *, references: bool = False
) -> Function | None:
    """A method with so many arguments as a function: it names the members of ``place``.

    None where the text has no such method of a structure, or several, and where it returns a
    reference, unless ``references`` are as good.
    """
    found, variable = only_method(unit, name, count, kind), place.variable
    if found is None or variable is None or variable.type.depth:
        return None
    if found.result.reference and not references:
        return None
    return _of(found, variable, fields_of(unit, kind))


def only_method(unit: Unit, name: str, count: int, kind: CType) -> Function | None:
    """The one method of this name in the text, if so many arguments fit and it stands for itself.

    It calls no other method of its object, which would have no name outside.
    """
    found = [f for f in unit.functions if f.method and bare(f.name) == name]
    if len(found) != 1 or found[0].template or unit.structs.of(kind.name) is None:
        return None
    if not found[0].required <= count <= len(found[0].parameters):
        return None
    methods = {bare(f.name) for f in unit.functions if f.method}
    called = {bare(e.function) for e in expressions(found[0].body) if isinstance(e, Call)}
    return None if called & methods else found[0]


def fields_of(unit: Unit, kind: CType) -> frozenset[str]:
    """The names of the members of a structure."""
    known = unit.structs.of(kind.name)
    return frozenset(field.name for field in known.fields) if known is not None else frozenset()


def called_of(call: Call) -> tuple[Expr | None, str]:
    """The object of a call and the name of its method."""
    if call.callee is not None:
        return call.callee, "operator()"
    return call.receiver, bare(call.function)


def changes_its_object(unit: Unit, call: Call) -> bool:
    """Whether a method of a variable may change a member of it, and not only what one leads to."""
    place, name = called_of(call)
    if not isinstance(place, Name) or place.variable is None:
        return True
    kind, local = named(place.variable.type.base, unit.aliases), place.variable
    count = len(call.arguments)
    method = method_of(unit, place, name, count, kind, references=True)
    known = unit.structs.of(kind.name)
    if method is None or known is None:
        return True
    arrays = {field.name for field in known.fields if field.rank}
    returned = [s.value for s in walk(method.body) if isinstance(s, Leave) and s.value is not None]
    if method.result.reference and any(_is_in(value, local, arrays) for value in returned):
        return True
    for part in expressions(method.body):
        match part:
            case Assign(target=target) | Step(target=target):
                if _is_in(target, local, arrays):
                    return True
            case Unary(op="&", operand=operand):
                if any(isinstance(e, Name) and e.variable is local for e in every(operand)):
                    return True
            case Call(function=function) if not pure(bare(function)):
                return True
    return False


def changes_an_element(unit: Unit, name: str, given: Collection[Expr]) -> bool:
    """Whether a method of this name may change its object, which lies in memory.

    Of a library none does that gets nothing.
    """
    found = [f for f in unit.functions if f.method and bare(f.name) == name]
    return any(map(_changes, found)) if found else bool(given)


def _changes(method: Function) -> bool:
    own = {v for s in walk(method.body) if isinstance(s, Declare) for v in s.variables
           if not v.type.reference}  # fmt: skip
    own |= {p for p in method.parameters if not p.type.reference}
    if any(isinstance(s, Verbatim) for s in walk(method.body)):
        return True
    for part in expressions(method.body):
        match part:
            case Assign(target=Name(variable=v)) | Step(target=Name(variable=v)) if v in own:
                pass
            case Assign() | Step() | Unary(op="&") | Unread() | Lambda():
                return True
            case Call(function=function) if not pure(bare(function)):
                return True
    return False


@lru_cache(maxsize=64)
def object_of(kind: str) -> Name:
    """What stands for an object in memory, whose method names its members; the same each time."""
    return Name(None, "(*this)", Variable("(*this)", TypeName(kind), "local", 0))


def _is_in(target: Expr, local: Variable, arrays: Collection[str]) -> bool:
    """Whether a place is in the object itself: a member, or an element of an array that is one."""
    while True:
        match target:
            case Member(base=base, arrow=False) | Cast(operand=base):
                target = base
            case Index(base=Member(field=field) as base) if field in arrays:
                target = base
            case Name(variable=variable):
                return variable is local
            case _:
                return False


@lru_cache(maxsize=256)
def _of(function: Function, variable: Variable, fields: frozenset[str]) -> Function | None:
    """The same each time, so that what it does is known again."""
    inside = [*expressions(function.body)]
    if any(isinstance(e, Unread | Lambda) for e in inside):
        return None
    own = {v.name for s in walk(function.body) if isinstance(s, Declare) for v in s.variables}
    own |= {p.name for p in function.parameters}
    outside_ = {e for e in inside if isinstance(e, Name) and e.variable is None}
    if own & fields or not {e.name for e in outside_} <= fields:
        return None
    if any(isinstance(s, Verbatim) for s in walk(function.body)):
        return None
    here = Name(None, variable.name, variable)
    swaps: dict[Node, Node] = {e: Member(None, here, e.name, arrow=False) for e in outside_}
    body = edited(function.body, swaps)
    return replace(function, body=body, method=False) if isinstance(body, Block) else None


def outside(unit: Unit, name: str) -> frozenset[str]:
    """The variables of the file that methods of this name may touch, or what they call."""
    known = {variable.name for one in unit.declarations for variable in one.variables}
    return frozenset(
        e.name
        for function in _reached(unit, name, set())
        for e in expressions(function.body)
        if isinstance(e, Name) and e.variable is None and e.name in known
    )


def _reached(unit: Unit, name: str, seen: set[str]) -> Iterator[Function]:
    seen.add(name)
    for function in (f for f in unit.functions if bare(f.name) == name):
        yield function
        for called in (e for e in expressions(function.body) if isinstance(e, Call)):
            if bare(called.function) not in seen:
                yield from _reached(unit, bare(called.function), seen)
