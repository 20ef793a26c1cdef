"""Functions that load an element and return early: with one return, of the same value.

``if (x < 0 || x >= n) return 0.0f; return a[x];`` is ``return x < 0 || x >= n ? 0.0f : a[x];``.
What is declared between the returns is declared before them, where that does nothing but compute.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Choice,
    Expr,
    Index,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Function,
    If,
    Leave,
    Statement,
    body_of,
    expressions,
    only_leaves,
    walk,
)


def loads(function: Function) -> bool:
    """Whether a function asks for an element of what it is given, and does more than return it."""
    given = {p for p in function.parameters if p.type.depth}
    places = [e for e in expressions(function.body) if isinstance(e, Index)]
    match function.body.body:
        case (Leave(value=Index() as whole),) if places == [whole]:
            return False
    return any(isinstance(e.base, Name) and e.base.variable in given for e in places)


def straight(function: Function) -> Function:
    """The function with its one return at its end; as it was where it cannot have that alone."""
    made = _straight(function)
    return function if made is None else made


def _straight(function: Function) -> Function | None:
    body, value = [*function.body.body], _returned(function.body)
    if value is not None:
        body.pop()
    kept = list[Statement]()
    while body:
        statement = body.pop()
        match statement:
            case Leave(kind="return", value=found) if value is None and found is not None:
                value = found
            case If(test=test, then=then, other=other, before=None) if only_leaves(then, "return"):
                early = _returned(then)
                late = value if other is None else _returned(other)
                if early is None or late is None or (other is not None and value is not None):
                    return None
                if not all(_computes(s) for s in kept) or _changes(test) or _changes(early):
                    return None
                value = Choice(None, test, early, late)
            case _ if any(isinstance(s, Leave) for s in walk(statement)):
                return None
            case _:
                kept.append(statement)
    if value is None:
        return None
    whole = Leave(None, function.body.line, "return", value)
    return replace(function, body=replace(function.body, body=(*reversed(kept), whole)))


def _returned(statement: Statement) -> Expr | None:
    """What a statement returns that does nothing else, or chooses between two that do."""
    inside = body_of(statement)
    match inside:
        case (Leave(kind="return", value=value),):
            return value
        case (If(test=test, then=then, other=Statement() as other, before=None),):
            one, two = _returned(then), _returned(other)
            return Choice(None, test, one, two) if one is not None and two is not None else None
    return None


def _changes(value: Expr) -> bool:
    """Whether to ask for a value changes something, so that it matters when."""
    return any(isinstance(e, Assign | Step | Unread) for e in every(value))


def _computes(statement: Statement) -> bool:
    """Whether a statement declares numbers, and may do so though nobody asks for them."""
    if not isinstance(statement, Declare):
        return isinstance(statement, Block) and not statement.body
    return not any(
        isinstance(e, Assign | Step | Call | Index | Unread)
        or (isinstance(e, Unary) and e.op == "*")
        or (isinstance(e, Binary) and e.op in "/%")
        for top in statement.expressions for e in every(top)
    )  # fmt: skip
