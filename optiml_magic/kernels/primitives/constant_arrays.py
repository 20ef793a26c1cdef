"""P10, a local array whose numbers stand in the text, and that nobody changes, in constant memory.

``const char digits[] = "0123456789abcdef"; ... digits[x & 15]``: where no compiler knows which
element is asked for, each thread stores all of them to local memory before it asks for one. In
constant memory they lie there once for all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Binary,
    Braces,
    Call,
    Cast,
    Expr,
    Index,
    Literal,
    Name,
    Unary,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Declare, Statement, Variable, expressions, walk
from optiml_magic.kernels.types import named

_MOST = 16 << 10  # bytes of an array: ours


@dataclass(frozen=True, eq=False)
class ConstantArray:
    """Such an array, where it is declared."""

    home: Declare
    variable: Variable


def constant_arrays(kernel: Kernel) -> list[ConstantArray]:
    """Those of which threads ask for elements that no compiler knows."""
    body = kernel.function.body
    declared = [(s, v) for s in walk(body) if isinstance(s, Declare) for v in s.variables]
    names = [v.name for _, v in declared] + [p.name for p in kernel.function.parameters]
    given = [v for s, v in declared if _is_given(kernel, s, v) and names.count(v.name) == 1]
    if not given:
        return []
    changed = _used_otherwise(kernel)
    trips = {axis.name for axis in kernel.reading.axes if axis.trips is not None}
    return [
        ConstantArray(home, variable)
        for home, variable in declared
        if variable in given and variable not in changed and any(
            not _is_told(access, trips)
            for access in kernel.reading.accesses
            if access.array == variable.name and access.space == "local"
        )
    ]  # fmt: skip


@primitive
def in_constant_memory(kernel: Kernel, arrays: Sequence[ConstantArray]) -> Kernel:
    """The kernel with these arrays in constant memory."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    helpers, taken = list[str](), list[str]()
    for array in arrays:
        variable = array.variable
        taken.append(kernel.fresh(f"{variable.name}_table", *taken))
        lengths = [_length(variable), *map(kernel.spelled, filter(None, variable.extents[1:]))]
        if variable.extents[0] is not None:
            lengths[0] = kernel.spelled(variable.extents[0])
        extents = "".join(f"[{length}]" for length in lengths)
        values = (
            kernel.spelled(variable.value)
            if variable.value is not None
            else "{" + ", ".join(kernel.spelled(e) for e in variable.initial) + "}"
        )
        helpers.append(f"__constant__ {variable.type.base} {taken[-1]}{extents} = {values};")
        swaps[array.home] = ()
        swaps |= {
            e: text(taken[-1]) for e in expressions(kernel.function.body)
            if isinstance(e, Name) and e.variable is variable
        }  # fmt: skip
    if not arrays:
        raise NotLegal("it has no local array whose numbers stand in the text")
    return kernel.rewritten(edited(kernel.function.body, swaps), helpers=helpers)


def _is_given(kernel: Kernel, home: Declare, variable: Variable) -> bool:
    """Whether it is an array of plain numbers, declared alone, with values that the text has."""
    kind = named(variable.type.base, kernel.unit.aliases)
    plain = variable.storage == "local" and not variable.type.depth and not variable.type.volatile
    if not plain or not kind.size or kind.lanes != 1 or len(home.variables) != 1:
        return False
    if not all(e is None or _is_number(e) for e in variable.extents) or not variable.extents:
        return False
    values = variable.initial if variable.value is None else (variable.value,)
    return bool(values) and all(map(_is_number, values)) and len(values) * kind.size <= _MOST


def _length(variable: Variable) -> str:
    """How many elements an array without a length has, where that is plain to see."""
    if variable.value is None:
        return str(len(variable.initial))
    whole = re.fullmatch(r'"([^"\\\\]*)"', getattr(variable.value, "text", ""))
    return str(len(whole[1].encode()) + 1) if whole else ""


def _is_number(value: Expr) -> bool:
    match value:
        case Literal():
            return True
        case Braces(type="", members=parts):
            return all(map(_is_number, parts))
        case Unary(op="-" | "+" | "~", operand=inner) | Cast(operand=inner):
            return _is_number(inner)
        case Binary(left=left, right=right):
            return _is_number(left) and _is_number(right)
    return False


def _used_otherwise(kernel: Kernel) -> set[Variable]:
    """The arrays of which more is asked than the values of single elements."""
    body, found = kernel.function.body, set[Variable]()
    elements = dict[Expr, Variable]()
    roots = set[Expr]()
    for expr in expressions(body):
        at, depth = expr, 0
        while isinstance(at, Index):
            at, depth = at.base, depth + 1
        whole = isinstance(at, Name) and at.variable and depth == len(at.variable.extents)
        if isinstance(at, Name) and at.variable is not None and depth and whole:
            roots.add(at)
            elements[expr] = at.variable
    for expr in expressions(body):
        if isinstance(expr, Name) and expr.variable is not None and expr not in roots:
            found.add(expr.variable)
        lent = (
            expr.arguments if isinstance(expr, Call)
            else (expr.operand,) if isinstance(expr, Unary) and expr.op == "&" else ()
        )  # fmt: skip
        found |= {elements[e] for e in lent if e in elements and not _stays(elements[e], expr)}
    for statement in walk(body):
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if variable.type.reference and variable.value is not None:
                found |= {elements[e] for e in every(variable.value) if e in elements}
    found |= {
        v for a in kernel.reading.accesses if a.mode != "load"
        for v in elements.values() if v.name == a.array
    }  # fmt: skip
    return found


def _stays(variable: Variable, expr: Expr) -> bool:
    """Whether a function that an element is passed to cannot change it."""
    return variable.type.const and isinstance(expr, Call)


def _is_told(access: Access, rounds: set[str]) -> bool:
    """Whether a compiler knows which element it is, once loops of constant rounds are unrolled."""
    return access.index is not None and access.index.symbols <= rounds
