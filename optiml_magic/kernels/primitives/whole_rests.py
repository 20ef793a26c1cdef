"""P14, rests of whole rows: ``(y * w + w) % (h * w)`` becomes ``(y + 1) % h * w``.

Of a ring of rows a flat index takes the rest by all of its elements. By whole rows it is found from
that of a row, which tells rules what lies in one row, and which of its neighbours an item has.

Let ``w`` be no zero. ``a * w`` by ``m * w``, rounded towards zero, is ``a`` by ``m``, so the rests
are ``w`` times each other, whatever their signs. Where ``w`` is zero there was no rest before.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Binary, Expr, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.naming import speller_before
from optiml_magic.kernels.reading import Rest
from optiml_magic.kernels.tree import Loop, Statement, walk

_WORD = 4  # bytes; what counts in more may be more than an `int` holds by rows, too


@primitive
def whole_rests(kernel: Kernel) -> Kernel:
    """The kernel with rests by rows where they were by elements; there must be one."""
    effects = Effects(kernel)
    swaps: dict[Node, Node] = {}
    for statement, expr, rest in _rests(kernel):
        size = _common(kernel, effects, rest)
        left, right = rest.left.over(size), rest.right.over(size)
        if left is None or right is None or size.value is not None:
            continue
        speller = speller_before(kernel, effects, statement)
        if speller.unsigned.keys() & (rest.left.symbols | rest.right.symbols):
            continue  # a rest below zero would wrap around where it is multiplied
        words = [_factor(speller.form(speller.local(form))) for form in (left, right, size)]
        swaps[expr] = text("({} % {} * {})".format(*words))
    if not swaps:
        raise NotLegal("no remainder is one of whole rows")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _rests(kernel: Kernel) -> Iterator[tuple[Statement, Expr, Rest]]:
    """Rests of signed numbers that are the same wherever they are read, outermost ones first."""
    types, seen = kernel.reading.types, set[Expr]()
    for statement in walk(kernel.function.body):
        if isinstance(statement, Loop):
            continue  # what stands in its head is computed anew where its counter has moved
        for expr in (e for top in statement.expressions for e in every(top)):
            found = kernel.reading.rests.get(expr, ())
            if expr in seen or not isinstance(expr, Binary) or not found:
                continue
            kinds = [types.get(side) for side in (expr, expr.left, expr.right)]
            plain = all(k is not None and k.signed and k.size == _WORD for k in kinds)
            if plain and len({(rest.left, rest.right) for rest in found}) == 1:
                seen |= {*every(expr)}
                yield statement, expr, found[0]


def _factor(words: str) -> str:
    plain = words.isidentifier() or words.isdigit()
    return words if plain else f"({words})"


def _common(kernel: Kernel, effects: Effects, rest: Rest) -> Polynomial:
    """The sizes that both sides of a rest are multiples of, as a product."""
    common, left, right = Polynomial.constant(1), rest.left, rest.right
    symbols = kernel.reading.symbols
    for name in sorted(left.symbols & right.symbols - effects.moved):
        size = Polynomial.symbol(name)
        while symbols[name].kind == "scalar":
            fewer, less = left.over(size), right.over(size)
            if fewer is None or less is None:
                break
            left, right, common = fewer, less, common * size
    return common
