"""A test that has a name, ``const bool inside = i < n && j < m;``, stands where it is asked for.

Steps look for guards, and a guard is a branch with its comparisons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Binary,
    Cast,
    Expr,
    Literal,
    Name,
    Unary,
    builtin,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.tree import Block, Declare, If, Variable, Verbatim, expressions, walk

_COMPARES = frozenset({"<", "<=", ">", ">=", "==", "!="})
_JOINS = frozenset({"&&", "||"})
_ADDS = frozenset({"+", "-", "*", "/", "%"})
_BASES = frozenset({"bool", "int", "auto"})


@primitive
def unnamed_tests(kernel: Kernel) -> Kernel:
    """The kernel without locals that are tests, and that branches alone ask for."""
    body, effects = kernel.function.body, Effects(kernel)
    if any(isinstance(s, Verbatim) for s in walk(body)):
        raise NotLegal("what a statement of it does is not read")
    if kernel.reading.barriers:
        raise NotLegal("its threads wait for each other")
    declared = [v for s in walk(body) if isinstance(s, Declare) for v in s.variables]
    given = kernel.function.parameters
    names = Counter(v.name for v in (*declared, *given))
    once = {name for name, n in names.items() if n == 1}
    moving = {v.name for d in kernel.unit.declarations for v in d.variables if not v.type.const}
    stay = effects.lasting | {p for p in given if p not in effects.changing}
    lines = {s for scope in walk(body) if isinstance(scope, Block) for s in scope.body}
    own = [v for s in lines if isinstance(s, Declare) for v in s.variables]
    found = {v: v.value for v in own if v.name in once and _is_test(v, effects)}
    told = {v: e for v, e in found.items()
            if e is not None and _stays(e, stay, once, names.keys() | moving)}  # fmt: skip
    asked = [
        e for s in walk(body) if isinstance(s, If) and not s.constant for e in _asked(s.test)
        if isinstance(e, Name) and e.variable in told
    ]  # fmt: skip
    all_named = Counter(e.variable for e in expressions(body) if isinstance(e, Name))
    alone = {v for v, n in Counter(e.variable for e in asked).items() if all_named[v] == n}
    if not alone:
        raise NotLegal("no local holds a test that only branches use")
    values = {v: e for v, e in told.items() if v in alone}
    swaps: dict[Node, Node | None] = {e: values[e.variable] for e in asked if e.variable in values}
    for statement in walk(body):
        if isinstance(statement, Declare) and alone & {*statement.variables}:
            left = tuple(v for v in statement.variables if v not in alone)
            swaps[statement] = replace(statement, variables=left, span=None) if left else None
    return kernel.rewritten(edited(body, swaps))


def _is_test(variable: Variable, effects: Effects) -> bool:
    plain = not variable.array and not variable.type.depth and not variable.type.volatile
    value = variable.value
    return (
        plain and value is not None and variable in effects.lasting
        and variable.storage == "local" and variable.type.base in _BASES and _compares(value)
    )  # fmt: skip


def _compares(expr: Expr) -> bool:
    match expr:
        case Binary(op=op, left=left, right=right):
            return op in _COMPARES or (op in _JOINS and _compares(left) and _compares(right))
        case Unary(op="!"):
            return True
        case Cast(operand=operand, type="bool"):
            return _compares(operand)
    return False


def _stays(
    expr: Expr, stay: frozenset[Variable] | set[Variable], once: set[str], others: set[str]
) -> bool:
    """Whether an expression is the same wherever it stands, and reads no memory.

    A name that is no local's is not one of the ``others``.
    """
    if builtin(expr):
        return True
    match expr:
        case Name(variable=Variable() as variable):
            return variable in stay and variable.name in once
        case Name(variable=None, name=name):
            return name not in others
        case Literal():
            return True
        case Binary(op=op):
            known = op in _COMPARES | _JOINS | _ADDS
        case Unary(op=op):
            known = op in ("!", "-", "+")
        case Cast():
            known = True
        case _:
            return False
    return known and all(_stays(part, stay, once, others) for part in expr.parts)


def _asked(test: Expr) -> Iterator[Expr]:
    """The parts that a test is joined of."""
    match test:
        case Binary(op=op, left=left, right=right) if op in _JOINS:
            yield from _asked(left)
            yield from _asked(right)
        case Unary(op="!", operand=operand) | Cast(operand=operand, type="bool"):
            yield from _asked(operand)
        case _:
            yield test
