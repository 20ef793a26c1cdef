"""Sums that a loop keeps side by side and that are added up behind it: one sum.

``s0 += a[k]; s1 += a[k + 1];`` and ``s0 + s1`` in the end hide the time that an addition takes, and
the one row that the loop adds up.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import chain, tops
from optiml_magic.kernels.tree import Block, Declare, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import CType

_WORD = 4  # bytes of an int
Swaps = dict[Node, Node | None]


def added_behind(
    kernel: Kernel, within: Collection[Statement], sums: Mapping[Variable, Collection[Variable]]
) -> Swaps | None:
    """What to exchange so that each of these sums has the ``others`` in it.

    ``within`` are the loops that add to them. None where somebody else asks for one of them.
    """
    body, ended = kernel.function.body, dict[Node, Expr]()
    inside = {e for s in within for e in expressions(s)}
    for own, others in sums.items():
        every = {own, *others}
        named = {e for e in expressions(body) if isinstance(e, Name) and e.variable in every}
        ends = [e for top in tops(body) for e in _chains(top) if _has_all(e, every)]
        if len(ends) != 1 or not all(map(_from_nothing, others)) or not _begin_at_once(body, every):
            return None
        types = kernel.reading.types
        kind, whole = (types.get(e) for e in (next(iter(named)), ends[0]))
        if kind is None or whole is None or not _joined(whole, kind):
            return None
        added = {e.target for e in inside if isinstance(e, Assign) and e.op == "+="}
        if not named & inside <= added:
            return None
        terms = [*chain(ends[0], "+")]
        if named - inside - {*terms} or len(named & {*terms}) != len(every):
            return None
        left = [t for t in terms if not isinstance(t, Name) or t.variable not in others]
        end = left[0]
        for term in left[1:]:
            end = Binary(None, "+", end, term)
        ended[ends[0]] = end
    swaps: Swaps = {at: edited(end, ended) for at, end in ended.items()}  # one within another
    gone = {v for others in sums.values() for v in others}
    if gone & Effects(kernel).addressed:
        return None
    for statement in walk(body):
        if isinstance(statement, Declare) and gone & {*statement.variables}:
            kept = tuple(v for v in statement.variables if v not in gone)
            swaps[statement] = replace(statement, variables=kept, span=None) if kept else None
    return swaps


def are_of_one_type(
    own: CType | None, beside: CType | None, one: CType | None, other: CType | None
) -> bool:
    """Whether two sums of such types are one, to which values of these types are added.

    What a shorter one of whole numbers loses is not lost in the sum of both, which is an int. And
    what a fraction leaves of a whole number depends on what it is added to.
    """
    if own is None or own != beside or own.depth or own.lanes != 1 or own.kind == "bool":
        return False
    if own.floating:
        return True
    known = one is not None and one.integral and other is not None and other.integral
    return own.integral and known and (own.size or 0) >= _WORD


def one_by_one(kind: CType, value: CType | None) -> bool:
    """Whether terms, whose sum is of the type of ``value``, may be added one after the other.

    A sum without a sign wraps before it is added to something longer, and one of 2 bytes ends where
    floats go on.
    """
    if value is None or value.depth or kind.depth or kind.lanes != 1 or kind.kind == "bool":
        return False
    if value.floating:
        return kind.floating and (value == kind or (value.size or 0) >= _WORD)
    longer = kind.floating or (kind.size or 0) > (value.size or 0)
    return value.integral and not (longer and not value.signed)


def _joined(whole: CType, kind: CType) -> bool:
    """Whether sums of a type, added up in ``whole``, may be one before they are.

    Of whole numbers the one may be more than any of the several, so that it wraps where they would
    be added up in something longer.
    """
    if kind.integral and not (whole.integral and whole.size == kind.size):
        return False
    return one_by_one(whole, kind)


def _begin_at_once(body: Statement, sums: Collection[Variable]) -> bool:
    """Whether all are declared among the same statements, so that each begins as often."""
    return any(
        {v for s in scope.body if isinstance(s, Declare) for v in s.variables} >= {*sums}
        for scope in walk(body)
        if isinstance(scope, Block)
    )


def _chains(expr: Expr) -> Iterator[Expr]:
    """The sums in an expression that are no parts of others."""
    if isinstance(expr, Binary) and expr.op == "+":
        yield expr
        for term in chain(expr, "+"):
            yield from _chains(term)
        return
    for part in expr.parts:
        yield from _chains(part)


def _has_all(expr: Expr, sums: Collection[Variable]) -> bool:
    return {*sums} <= {t.variable for t in chain(expr, "+") if isinstance(t, Name)}


def _from_nothing(variable: Variable) -> bool:
    """Whether a sum begins at nothing, where it is declared."""
    value = variable.value
    plain = variable.storage == "local" and not variable.array and not variable.type.depth
    return plain and isinstance(value, Literal) and value.value == 0
