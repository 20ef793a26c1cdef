"""P3, one extent: what a block shares as rows of elements, as one row of all of them.

``counts[key][part]`` of ``int counts[6][4]`` becomes ``counts[key * 4 + part]``, for whoever asks
for an element by one number, and ``counts[i / 4][i % 4]`` is ``counts[i]``.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Binary, Expr, Index, Literal, Member, Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Declare, Variable, expressions, walk


@primitive
def one_extent(kernel: Kernel) -> Kernel:
    """The kernel whose shared arrays of several extents have one each; there must be some."""
    body = kernel.function.body
    arrays = {
        variable: replace(variable, extents=(_count(variable.extents),), span=None)
        for statement in walk(body)
        if isinstance(statement, Declare)
        for variable in statement.variables
        if variable.storage == "shared" and len(variable.extents) > 1
    }
    if not arrays:
        raise NotLegal("no array that its threads share has several extents")
    swaps: dict[Node, Node] = {}
    found = set[Name]()
    for element in expressions(body):
        name, places = _element(element)
        if name is None or name.variable not in arrays:
            continue
        extents = name.variable.extents
        if len(places) == len(extents):
            found.add(name)
            swaps[element] = Index(None, name, _place(kernel, places, name.variable))
    for name in (e for e in expressions(body) if isinstance(e, Name) and e.variable in arrays):
        if name not in found:
            raise NotLegal(f"`{name.name}` is asked for by rows")
    for statement in walk(body):
        if isinstance(statement, Declare) and not arrays.keys().isdisjoint(statement.variables):
            own = tuple(arrays.get(v, v) for v in statement.variables)
            swaps[statement] = replace(statement, variables=own, span=None)
    return kernel.rewritten(edited(body, swaps))


def _count(extents: tuple[Expr | None, ...]) -> Expr | None:
    whole = extents[0]
    for extent in extents[1:]:
        assert extent is not None  # C++ demands all but the first
        whole = Binary(None, "*", whole, extent) if whole is not None else None
    return whole


def _element(expr: Expr) -> tuple[Name | None, list[Expr]]:
    """The array that an element is of and its places in it, the outermost first."""
    places = list[Expr]()
    while isinstance(expr, Index):
        places.insert(0, expr.index)
        expr = expr.base
    return (expr if isinstance(expr, Name) else None), places


def _place(kernel: Kernel, places: list[Expr], array: Variable) -> Expr:
    counts = kernel.reading.arrays[array.name].extents
    place = places[0]
    for at, inner in enumerate(places[1:], 1):
        extent, count = array.extents[at], counts[at]
        assert extent is not None
        whole = _divided(kernel, place, inner, count.value if count is not None else None)
        place = whole or Binary(None, "+", Binary(None, "*", place, extent), inner)
    return place


def _divided(kernel: Kernel, quotient: Expr, rest: Expr, by: int | None) -> Expr | None:
    """What is divided by so many for one place, where the other is what that leaves."""
    match quotient, rest:
        case (
            Binary(op="/", left=whole, right=Literal(value=one)),
            Binary(op="%", left=same, right=Literal(value=two)),
        ) if by is not None and one == two == by and kernel.spelled(whole) == kernel.spelled(same):
            quiet = all(isinstance(e, Name | Literal | Member | Binary) for e in every(whole))
            return whole if quiet else None
    return None
