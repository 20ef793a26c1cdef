"""Normal form: ``sincosf(x, &s, &c);`` is ``s = sinf(x); c = cosf(x);``.

What is found by the addresses that a function takes is seen by few steps; values are by all. Later
``sines_at_once`` finds both together again.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Call,
    Cast,
    Expr,
    Index,
    Literal,
    Member,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import declared_in, lent_in, names
from optiml_magic.kernels.tree import Block, Evaluate, Statement, Variable, walk
from optiml_magic.kernels.types import named

#: The type of both results, and the functions that give one each.
_HALVES = {
    "sincosf": ("float", "sinf", "cosf"),
    "__sincosf": ("float", "__sinf", "__cosf"),
    "sincospif": ("float", "sinpif", "cospif"),
    "sincos": ("double", "sin", "cos"),
    "sincospi": ("double", "sinpi", "cospi"),
}


@primitive
def sines_apart(kernel: Kernel) -> Kernel:
    """The kernel with all such statements of locals as assignments; it has some."""
    body = kernel.function.body
    swaps, given = dict[Node, Node | tuple[Statement, ...] | None](), set[Variable]()
    for statement in (s for block in walk(body) if isinstance(block, Block) for s in block.body):
        halves = [*_apart(kernel, statement)] if isinstance(statement, Evaluate) else []
        if halves:
            swaps[statement] = tuple(
                Evaluate(None, statement.line, Assign(None, "=", Name(None, own.name, own), value))
                for own, value in halves
            )
            given |= {own for own, _ in halves}
    if not swaps:
        raise NotLegal("no sine and cosine are found by the addresses of locals")
    made = edited(body, swaps)
    if given & lent_in(made):
        raise NotLegal("more leads to a sine or cosine than its name")
    return kernel.rewritten(made)


def _apart(kernel: Kernel, statement: Evaluate) -> Iterator[tuple[Variable, Call]]:
    """What each local is given; nothing where the angle may be another one for the second."""
    match statement.expression:
        case Call(
            function=both, callee=None, receiver=None,
            arguments=(angle, Unary(op="&", operand=Name(variable=Variable() as sine)),
                       Unary(op="&", operand=Name(variable=Variable() as cosine))),
        ) if both in _HALVES and not kernel.unit.called(both, 3):  # fmt: skip
            kind, *halves = _HALVES[both]
            found = zip((sine, cosine), halves, strict=True)
            plain = all(_is_plain(kernel, own, kind) for own in (sine, cosine))
            hidden = {v.name for v in declared_in(kernel.function.body)} & {*halves}
            if plain and not hidden and sine is not cosine and _is_quiet(angle, (sine, cosine)):
                known = kernel.reading.types.get(angle)
                if kind == "double" and (known is None or known.name != kind):
                    angle = Cast(None, kind, angle)  # `sin` of a float is another function
                yield from ((own, Call(None, half, (angle,))) for own, half in found)


def _is_plain(kernel: Kernel, own: Variable, kind: str) -> bool:
    plain = own.storage == "local" and not own.array and not own.type.depth
    same = named(own.type.base, kernel.unit.aliases).name == kind
    return plain and same and not own.type.reference and not own.type.volatile


def _is_quiet(angle: Expr, given: tuple[Variable, ...]) -> bool:
    """Whether to compute an angle does nothing, and asks for none of what is given."""
    plain = Name | Literal | Index | Member | Binary | Cast
    return not names([angle]) & {*given} and all(
        isinstance(e, plain) or builtin(e) or (isinstance(e, Unary) and e.op in "+-*")
        for e in every(angle)
    )
