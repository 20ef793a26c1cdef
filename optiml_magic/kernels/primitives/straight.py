"""Functions that load an element and return early: with one return, of the same value.

``if (x < 0 || x >= n) return 0.0f; return a[x];`` is ``return x < 0 || x >= n ? 0.0f : a[x];``.
What is declared between the returns is declared before them, where that does nothing but compute.
A loop that returns and has but ``return false;`` behind it leaves what it found in a local.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Choice,
    Expr,
    Index,
    Literal,
    Name,
    Step,
    Unary,
    Unread,
    every,
)
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Function,
    If,
    Leave,
    Loop,
    Statement,
    Variable,
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
            case Loop() if not kept and _is_number(value) and (returns := _stopping(statement)):
                result = _fresh(function, "result")
                variable = Variable(result, function.result, "local", 0, value=value)
                value = Name(None, result, variable)
                declared = Declare(None, 0, f"{function.result.base} ", (variable,))
                kept += [_broken(statement, returns, variable), declared]
            case _ if any(isinstance(s, Leave) for s in walk(statement)):
                return None
            case _:
                kept.append(statement)
    if value is None:
        return None
    whole = Leave(None, function.body.line, "return", value)
    return replace(function, body=replace(function.body, body=(*reversed(kept), whole)))


def _is_number(value: Expr | None) -> bool:
    return isinstance(value.operand if isinstance(value, Unary) else value, Literal)


def _stopping(loop: Loop) -> list[Leave]:
    """The returns of a loop, where each ends no more than it; else none."""
    inside = [s for s in walk(loop.body) if isinstance(s, Leave) and s.kind == "return"]
    within = {s for other in walk(loop.body) if isinstance(other, Loop) for s in walk(other)}
    return [] if within & {*inside} else inside


def _broken(loop: Loop, returns: list[Leave], result: Variable) -> Loop:
    """A loop that leaves what it returned in a local."""
    swaps: dict[Node, Node] = {}
    for leave in returns:
        assert leave.value is not None
        given = Assign(None, "=", Name(None, result.name, result), leave.value)
        ended = Leave(None, leave.line, "break")
        swaps[leave] = Block(None, leave.line, (Evaluate(None, leave.line, given), ended))
    return edited(loop, swaps)


def _fresh(function: Function, name: str) -> str:
    own = {v.name for s in walk(function.body) if isinstance(s, Declare) for v in s.variables}
    own |= {e.name for e in expressions(function.body) if isinstance(e, Name)}
    own |= {parameter.name for parameter in function.parameters}
    return next(n for n in (name, *(f"{name}_{k}" for k in range(2, 99))) if n not in own)


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
