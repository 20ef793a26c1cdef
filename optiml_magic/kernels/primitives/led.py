"""Which locals are reached by more than their own names."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.expressions import Expr, Index, Lambda, Member, Name, Unary, Unread, every
from optiml_magic.kernels.primitives.effects import names
from optiml_magic.kernels.tree import Declare, Statement, Variable, expressions, walk


def led_to(body: Statement) -> frozenset[Variable]:
    """The locals that a reference, an address, a lambda or a part not read leads to.

    Of ``&v[i]`` that is ``v`` where it is an array, and nothing where ``v`` is a pointer.
    """
    found = set[Variable]()
    for place in _bound(body):
        found |= _root(place)
    for e in expressions(body):
        found |= _leads(e)
    return frozenset(found)


def under_names(body: Statement) -> frozenset[Variable]:
    """The locals that are reached by several names, and those that are such names."""
    found = set(led_to(body))
    for statement in (s for s in walk(body) if isinstance(s, Declare)):
        for v in statement.variables:
            given = [v.value] if v.value is not None else [*v.initial]
            leads = any(_leads(e) for top in given for e in every(top))
            if leads or (v.type.reference and any(_root(top) for top in given)):
                found.add(v)
    return frozenset(found)


def _bound(body: Statement) -> Iterator[Expr]:
    for statement in (s for s in walk(body) if isinstance(s, Declare)):
        for v in statement.variables:
            if v.type.reference:
                yield from [v.value] if v.value is not None else v.initial


def _leads(e: Expr) -> frozenset[Variable]:
    """The locals that an expression leads to, its parts aside."""
    if isinstance(e, Unary) and e.op == "&":
        return _root(e.operand)
    return names([e]) if isinstance(e, Lambda | Unread) else frozenset()


def _root(place: Expr) -> frozenset[Variable]:
    """The locals that a place may be, or be a part of."""
    while isinstance(place, Index) or (isinstance(place, Member) and not place.arrow):
        place = place.base
        if isinstance(place, Name) and place.variable is not None:
            v = place.variable
            if v.type.depth and not v.array:  # what a pointer leads to is none of its own
                return frozenset()
    return names([place])
