"""What names stand for, in their place: locals for references to them, ``float& s = sum;``.

What a primitive asks of a local, it asks of one variable then. And an index in the grid is one sum
of what the hardware says, where locals held parts of it, ``int tx = threadIdx.x;``, or where more
is added between them: ``1 + blockIdx.x * blockDim.x + threadIdx.x``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Binary,
    Cast,
    Expr,
    Lambda,
    Literal,
    Name,
    Unread,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import axis_of, bare, tops
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Function,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import CType


@primitive
def direct(kernel: Kernel) -> Kernel:
    """The kernel without its references to locals and parameters; there must be some."""
    function = kernel.function
    _all_read(function)
    meant: dict[Variable, Variable] = {}
    swaps: dict[Node, Node | None] = {}
    for statement in walk(function.body):
        match statement:
            case Declare(variables=(Variable(value=Name(variable=Variable() as local)) as other,)):
                local = meant.get(local, local)
                if _stands_for(other, local) and _everywhere(function, other, local):
                    meant[other] = local
                    swaps[statement] = None
    if not meant:
        raise NotLegal("no reference stands for a local")
    for expression in expressions(function.body):
        if isinstance(expression, Name) and expression.variable in meant:
            local = meant[expression.variable]
            swaps[expression] = Name(None, local.name, local)
    return kernel.rewritten(edited(function.body, swaps))


def _stands_for(other: Variable, local: Variable) -> bool:
    """Whether one is bound to the other itself, and not to a copy in another type."""
    same = other.type.base in ("auto", local.type.base) and other.type.depth == local.type.depth
    return other.type.reference and not local.type.reference and same


def _everywhere(function: Function, other: Variable, local: Variable) -> bool:
    """Whether the local's name means it wherever the reference stands, and can be put there."""
    declared = [*function.parameters]
    for statement in walk(function.body):
        declared += statement.variables if isinstance(statement, Declare) else ()
    unread = (
        part
        for expression in expressions(function.body)
        if isinstance(expression, Lambda | Unread)
        for part in every(expression)
    )
    hidden = any(isinstance(part, Name) and part.variable is other for part in unread)
    return [v.name for v in declared].count(local.name) == 1 and not hidden


@primitive
def in_full(kernel: Kernel) -> Kernel:
    """The kernel whose indices in the grid are sums of their own, without locals.

    There must be one that is not.
    """
    body = kernel.function.body
    _all_read(kernel.function)
    held = _held(kernel)
    swaps: dict[Node, Node | None] = {}
    for top in tops(body):
        _spell(kernel, top, held, swaps)
    if not swaps:
        raise NotLegal("no index in the grid is split into parts")
    parts = {v for s in _lines(body) for v in s.variables if _differs(kernel, v, held)}
    while swaps:
        body, swaps = edited(body, swaps), {}
        idle = parts - {v for top in tops(body) for v in _mentioned(top)}
        for declared in (s for s in _lines(body) if not idle.isdisjoint(s.variables)):
            left = tuple(v for v in declared.variables if v not in idle)
            swaps[declared] = replace(declared, variables=left, span=None) if left else None
    return kernel.rewritten(body, tidy=False)


@primitive
def places_in_full(kernel: Kernel) -> Kernel:
    """The kernel that asks for no local that is a thread's place in its block, ``tx``."""
    body, types = kernel.function.body, kernel.reading.types
    _all_read(kernel.function)
    places = {v: place for v in _held(kernel) if v.value is not None
              and builtin(place := bare(v.value)).startswith("threadIdx.")}  # fmt: skip
    swaps = dict[Node, Node]()
    for part in (e for top in tops(body) for e in every(top)):
        if isinstance(part, Name) and part.variable in places:
            kind = types.get(part)
            if kind is None or not kind.integral or kind.size not in (4, 8):
                raise NotLegal(f"`{part.name}` does not hold every place")
            swaps[part] = Cast(None, kind.name, places[part.variable])
    if not swaps:
        raise NotLegal("no local is a thread's place in its block")
    return kernel.rewritten(edited(body, swaps), tidy=False)


def _all_read(function: Function) -> None:
    for statement in walk(function.body):
        if isinstance(statement, Verbatim):
            raise NotLegal(f"{statement.reason} is not read", statement.line)


def _held(kernel: Kernel) -> frozenset[Variable]:
    """The locals that hold all along what the hardware says, or a product of it."""
    lasting = Effects(kernel).lasting
    return frozenset(v for v in lasting if v.value is not None and _is_part(v.value, lasting))


def _is_part(expr: Expr, lasting: Collection[Variable]) -> bool:
    match bare(expr):
        case Binary(op="*", left=left, right=right):
            return _is_part(left, lasting) and _is_part(right, lasting)
        case Name(variable=Variable(value=value) as held) if held in lasting and value is not None:
            return _is_part(value, lasting)
        case Literal(value=int()):
            return True
    return bool(builtin(bare(expr)))


def _lines(body: Block) -> Iterator[Declare]:
    """The declarations that are statements of blocks, not of the heads of loops."""
    for block in walk(body):
        if isinstance(block, Block):
            yield from (s for s in block.body if isinstance(s, Declare))


def _differs(kernel: Kernel, variable: Variable, held: Collection[Variable]) -> bool:
    """Whether it is a held one that is no constant: those may stand where no expression does."""
    value = variable.value if variable in held else None
    return value is not None and any(builtin(e) for e in every(_spelled(kernel, value, held)))


def _spell(
    kernel: Kernel, expr: Expr, held: Collection[Variable], swaps: dict[Node, Node | None]
) -> None:
    """Exchange the sums that are an index in the grid once locals are spelled out."""
    if isinstance(expr, Binary) and expr.op in ("+", "-") and not axis_of(kernel, expr):
        new = _spelled(kernel, expr, held)
        whole = new if axis_of(kernel, new) else _gathered(kernel, expr, held)
        if whole is not None and whole is not expr:
            swaps[expr] = whole
            return
    for part in expr.parts:
        _spell(kernel, part, held, swaps)


def _gathered(kernel: Kernel, expr: Expr, held: Collection[Variable]) -> Expr | None:
    """A sum with the index that is in it first; None where none is, or it is a sum already.

    All is added in the type of the whole as before, so that the order says nothing.
    """
    kind = kernel.reading.types.get(expr)
    if kind is None or not kind.integral or kind.size not in (4, 8):
        return None
    terms = [*_terms(kernel, expr, kind)]
    sums = (s for s in every(expr) if isinstance(s, Binary) and s.op == "+" and s is not expr)
    if terms[0][1] is expr or any(axis_of(kernel, _spelled(kernel, s, held)) for s in sums):
        return None
    added = [(term, _spelled(kernel, term, held)) for less, term in terms if not less]
    threads = [(t, e) for t, e in added if builtin(bare(e)).startswith("threadIdx.")]
    for own, thread in threads:
        for other, start in added:
            # Where the block begins has the bits of the whole: 32 of them would wrap.
            first = start if _is_of(kernel, other, kind) else Cast(None, kind.name, start)
            index = Binary(None, "+", first, thread)
            if axis_of(kernel, index):
                return _and_others(index, (t for t in terms if t[1] not in (own, other)))
    return None


def _and_others(index: Expr, terms: Iterable[tuple[bool, Expr]]) -> Expr:
    for less, term in terms:
        index = Binary(None, "-" if less else "+", index, term)
    return index


def _terms(
    kernel: Kernel, expr: Expr, kind: CType, *, less: bool = False
) -> Iterator[tuple[bool, Expr]]:
    """What is added in a type, and whether it is taken away."""
    if isinstance(expr, Binary) and expr.op in ("+", "-") and _is_of(kernel, expr, kind):
        yield from _terms(kernel, expr.left, kind, less=less)
        yield from _terms(kernel, expr.right, kind, less=less != (expr.op == "-"))
    else:
        yield less, expr


def _is_of(kernel: Kernel, expr: Expr, kind: CType) -> bool:
    own = kernel.reading.types.get(expr)
    return own is not None and own.integral and own.size == kind.size


def _spelled(kernel: Kernel, expr: Expr, held: Collection[Variable]) -> Expr:
    """The expression with what the locals hold in their place, converted as they were."""
    swaps: dict[Node, Node] = {}
    for part in every(expr):
        match part:
            case Name(variable=Variable(value=value) as local) if local in held:
                kind = kernel.reading.types.get(part)
                if kind is None or not kind.integral or kind.size not in (4, 8) or value is None:
                    return expr
                swaps[part] = Cast(None, kind.name, _spelled(kernel, value, held))
    return edited(expr, swaps) if swaps else expr


def _mentioned(expr: Expr) -> Iterator[Variable]:
    return (e.variable for e in every(expr) if isinstance(e, Name) and e.variable is not None)
