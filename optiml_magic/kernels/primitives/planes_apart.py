"""Shared memory that is named by planes, ``s[0][t]`` and ``s[1][t]``, as an array for each.

A block that brings several numbers to a sum often keeps them so. Who follows what threads put into
an array then finds one number of each thread in it.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Expr, Index, Literal, Name, Unary
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access
from optiml_magic.kernels.tree import Declare, Variable, expressions, walk

_MOST = 8  # planes, each of which is a name in the text: ours


@primitive
def planes_apart(kernel: Kernel) -> Kernel:
    """The kernel with an array for each plane of those whose first index is always a number."""
    swaps: dict[Node, Node] = {}
    taken: list[str] = []
    for statement in (s for s in walk(kernel.function.body) if isinstance(s, Declare)):
        own: list[Variable] = []
        for variable in statement.variables:
            planes = _planes(kernel, variable)
            for number, places in planes.items():
                name = kernel.fresh(f"{variable.name}_{number}", *taken)
                taken.append(name)
                swaps |= {place: Name(None, name) for place in places}
                own.append(replace(variable, name=name, span=None, extents=variable.extents[1:]))
            own += [] if planes else [variable]
        if own != [*statement.variables]:
            swaps[statement] = replace(statement, span=None, variables=tuple(own))
    if not swaps:
        raise NotLegal("no shared array is always indexed by the number of a plane")
    return kernel.rewritten(edited(kernel.function.body, swaps), tidy=False)


def _planes(kernel: Kernel, variable: Variable) -> dict[int, list[Expr]]:
    """The planes of an array with the expressions for each; none where it is asked otherwise."""
    array = kernel.reading.arrays.get(variable.name)
    if variable.storage != "shared" or len(variable.extents) < 2 or array is None:
        return {}
    extents = [e.value if e is not None else None for e in array.extents]
    if len(extents) != len(variable.extents) or not 1 < (extents[0] or 0) <= _MOST:
        return {}
    found: dict[int, list[Expr]] = {}
    mentions = elements = 0
    for expr in expressions(kernel.function.body):
        mentions += isinstance(expr, Name) and expr.variable is variable
        elements += _indices(expr, variable) == len(extents)
        match expr:
            case Unary(op="&", operand=place) if _indices(place, variable):
                return {}
            case Index(index=Literal(value=int(number))) if _indices(expr, variable) == 1:
                found.setdefault(number, []).append(expr)
    alone = mentions == elements == sum(map(len, found.values()))
    inside = all(_is_inside(kernel, a, extents) for a in kernel.reading.of(variable.name))
    return dict(sorted(found.items())) if alone and inside else {}


def _indices(expr: Expr, variable: Variable) -> int:
    """How many indices of an array an expression has; 0 where it is of none."""
    count = 0
    while isinstance(expr, Index):
        expr, count = expr.base, count + 1
    return count if isinstance(expr, Name) and expr.variable is variable else 0


def _is_inside(kernel: Kernel, access: Access, extents: list[int | None]) -> bool:
    """Whether what is asked for lies in the plane, and in the row, that it is asked of."""
    ranges = Ranges(access.guard, kernel.reading.symbols)
    return len(access.digits) == len(extents) and all(
        extent is not None and ranges.within(digit, Polynomial.constant(extent))
        for digit, extent in zip(access.digits, extents, strict=True)
    )
