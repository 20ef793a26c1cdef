"""Loads from one array on both ways of a choice, as one load from the place that is chosen.

``s[t] = i < 3 ? a[0] : a[i - 3];``, and ``if (i < 3) s[t] = a[0]; else s[t] = a[i - 3];``, become
``s[t] = a[i < 3 ? 0 : i - 3];``: what is brought to a tile then comes from one place.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Call, Choice, Expr, Index, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.places import bare
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.primitives.type_names import names_in
from optiml_magic.kernels.primitives.untiled import BARRIER
from optiml_magic.kernels.tree import Block, Declare, Evaluate, If, Statement, walk
from optiml_magic.kernels.types import CType


@dataclass(frozen=True)
class _Load:
    """An element of an array, by an index of this type."""

    base: Name
    index: Expr
    kind: CType

    @property
    def element(self) -> Index:
        return Index(None, self.base, self.index)


@primitive
def one_load(kernel: Kernel) -> Kernel:
    """The kernel where what is brought before its last barrier is chosen by its place."""
    swaps: dict[Node, Node] = {}
    done = set[Statement]()
    for statement in _before_last_barrier(kernel):
        if statement in done or names_in(kernel, statement):
            continue
        match statement:
            case If():
                if (stored := _stored(kernel, statement)) is not None:
                    target, load = stored
                    made = Assign(None, "=", target, load.element)
                    swaps[statement] = Evaluate(None, statement.line, made)
                    done |= {*walk(statement)}
            case Evaluate(expression=Assign(value=Choice() as choice)):
                swaps |= _one(kernel, choice)
            case _:
                for variable in statement.variables if isinstance(statement, Declare) else ():
                    if isinstance(variable.value, Choice):
                        swaps |= _one(kernel, variable.value)
    if not swaps:
        raise NotLegal("no choice is between loads from one array")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _before_last_barrier(kernel: Kernel) -> list[Statement]:
    found = [*walk(kernel.function.body)]
    waits = [
        at for at, s in enumerate(found)
        if isinstance(s, Evaluate) and isinstance(s.expression, Call)
        and s.expression.function == BARRIER
    ]  # fmt: skip
    return found[: waits[-1]] if waits else []


def _one(kernel: Kernel, choice: Choice) -> dict[Node, Node]:
    load = _load(kernel, choice)
    return {choice: load.element} if load is not None else {}


def _load(kernel: Kernel, expr: Expr) -> _Load | None:
    """The load that an expression is, or chooses to be."""
    match bare(expr):
        case Index(base=Name() as base, index=index):
            kind, array = kernel.reading.types.get(index), base.variable
            known = array is not None and array.type.depth == 1
            return _Load(base, index, kind) if known and kind is not None else None
        case Choice(test=test, then=then, other=other):
            return _between(test, _load(kernel, then), _load(kernel, other))
    return None


def _between(test: Expr, one: _Load | None, other: _Load | None) -> _Load | None:
    """One load or the other; their indices are not converted to a type that one does not have."""
    if one is None or other is None or one.kind != other.kind or not quiet(test):
        return None
    if one.base.variable is not other.base.variable:
        return None
    return _Load(one.base, Choice(None, test, one.index, other.index), one.kind)


def _stored(kernel: Kernel, way: Statement) -> tuple[Expr, _Load] | None:
    """The element that a way stores to, if that is all that it does, and what it loads for it."""
    target: Expr
    match way:
        case Block(body=(Statement() as alone,)):
            return _stored(kernel, alone)
        case Evaluate(expression=Assign(op="=", target=Index() as element, value=value)):
            target, load = element, _load(kernel, value)
        case If(before=None, constant=False, test=test, then=then, other=Statement() as last):
            one, other = _stored(kernel, then), _stored(kernel, last)
            if one is None or other is None or not same(one[0], other[0]):
                return None
            target, load = one[0], _between(test, one[1], other[1])
        case _:
            return None
    return (target, load) if load is not None and quiet(target) else None
