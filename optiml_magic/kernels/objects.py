"""Objects that may refer to what they are made of, and change it by that: ``R r(sum);``."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tree_sitter import Node

from optiml_magic.kernels.expressions import Braces, Call, Expr
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.structs import members
from optiml_magic.kernels.tree import Declare, Function, Variable, expressions, walk
from optiml_magic.kernels.types import named
from optiml_magic.kernels.unit import Unit


def made_of(unit: Unit, function: Function) -> Iterator[Expr]:
    """What the objects of a function are made of, where they may refer to it."""
    given = {parameter.name for parameter in function.template}
    for variable in _declared(function):
        if variable.type.base not in given and _lends(unit, variable):
            yield from (e for e in (variable.value, *variable.initial) if e is not None)
    for made in _made(unit, function):
        yield from made.parts


def without_name(unit: Unit, function: Function) -> Collection[Expr]:
    """Such objects that no variable is."""
    return {*_made(unit, function)} - {v.value for v in _declared(function)}


def _declared(function: Function) -> Iterator[Variable]:
    for statement in walk(function.body):
        yield from statement.variables if isinstance(statement, Declare) else ()


def _made(unit: Unit, function: Function) -> Iterator[Expr]:
    """Such objects where an expression makes them."""
    for expr in expressions(function.body):
        match expr:
            case Call(function=name) if refers(unit, bare(name)):
                yield expr
            case Braces(type=name) if refers(unit, name):
                yield expr


def _lends(unit: Unit, variable: Variable) -> bool:
    """Whether an object may change what it is made of, now or later, as it refers to that.

    Of a class that the text does not define, that is taken to be so where it is constructed.
    """
    kind = named(variable.type.base, unit.aliases)
    if variable.type.depth or variable.type.reference or variable.type.base == "auto":
        return False
    if kind.kind not in ("record", "unknown"):
        return False
    return refers(unit, kind.name, otherwise=variable.opening != "=")


def refers(
    unit: Unit, name: str, *, otherwise: bool = False, seen: frozenset[str] = frozenset()
) -> bool:
    """Whether an object of the class of this name may refer to what it is made of, or change it.

    ``otherwise`` where the text has no such class.
    """
    body = unit.structs.body(name)
    if body is None or name in seen:
        return otherwise
    parts = members(unit, name)
    taken = [p for f in unit.functions if bare(f.name) == name for p in f.parameters
             if p.type.reference]  # fmt: skip
    derived = body.parent is not None and any(
        part.type == "base_class_clause" for part in body.parent.children
    )
    return (
        derived
        or any(not p.type.const for p in taken)
        or bool(taken and any(part.pointer for part in parts))
        or any(map(_is_reference, body.named_children))
        or any(refers(unit, one, otherwise=True, seen=seen | {name}) for one in _inner(unit, name))
    )


def _is_reference(node: Node) -> bool:
    """Whether a member is a reference, and no function with one."""
    if node.type != "field_declaration":
        return False
    todo = [*node.children_by_field_name("declarator")]
    while todo:
        part = todo.pop()
        if part.type == "function_declarator":
            continue
        if part.type == "reference_declarator":
            return all(c.type != "function_declarator" for c in part.named_children)
        todo += part.named_children
    return False


def _inner(unit: Unit, name: str) -> Iterator[str]:
    """The types of members that are structures themselves."""
    struct = unit.structs.of(name)
    for part in struct.fields if struct is not None else ():
        if part.type.kind == "record" and not part.type.depth:
            yield part.type.name
