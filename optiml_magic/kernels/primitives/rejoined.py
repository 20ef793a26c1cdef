"""A number whose digits are put together again, ``x % 256 / 8 + x / 256 * 32``, is ``x / 8``.

So is what a block brought several rows of at a time, where the row is asked for by its place in
the tile (``unstaged``). Of a remainder's remainder, ``x % 256 % 8``, the last one is left.
"""

from __future__ import annotations

from functools import reduce

from optiml_magic.kernels.combining import same
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Binary, Call, Expr, Literal, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.places import chain
from optiml_magic.kernels.tree import walk


@primitive
def rejoined(kernel: Kernel) -> Kernel:
    """The kernel with all such numbers whole, of which there must be one."""
    made = kernel
    while swaps := _swaps(made):
        made = made.rewritten(edited(made.function.body, swaps))
    if made is kernel:
        raise NotLegal("no number is put together of its digits")
    return made


def _swaps(kernel: Kernel) -> dict[Node, Node]:
    """The first such number of each expression; rounding towards zero, whatever the sign."""
    types, swaps = kernel.reading.types, dict[Node, Node]()
    for top in (e for s in walk(kernel.function.body) for e in s.expressions):
        for e in every(top):
            kind = types.get(e)
            if kind is None or not kind.integral or kind.depth:
                continue
            new = _last(e) if isinstance(e, Binary) and e.op == "%" else _whole(e)
            if new is not None:
                swaps[e] = new
                break
    return swaps


def _last(e: Binary) -> Expr | None:
    match e:
        case Binary(
            left=Binary(op="%", left=x, right=Literal(value=int(a))),
            right=Literal(value=int(b)) as by,
        ):
            return Binary(None, "%", x, by) if b > 0 and a % b == 0 else None
    return None


def _whole(e: Expr) -> Expr | None:
    """A sum with the first of its numbers that has both digits in it made whole."""
    if not isinstance(e, Binary) or e.op != "+":
        return None
    terms = [*chain(e, "+")]
    for one in terms:
        match one:
            case Binary(
                op="/",
                left=Binary(op="%", left=x, right=Literal(value=int(a))),
                right=Literal(value=int(b)) as by,
            ):
                if b <= 0 or a <= 0 or a % b or not _stays(x):
                    continue
                for other in terms:
                    if _is_high(other, x, a, a // b):
                        whole = Binary(None, "/", x, by)
                        rest = [whole if t is one else t for t in terms if t is not other]
                        return reduce(lambda left, right: Binary(None, "+", left, right), rest)
    return None


def _is_high(term: Expr, x: Expr, a: int, factor: int) -> bool:
    """Whether a term is ``x / a * factor``."""
    match term:
        case Binary(
            op="*",
            left=Binary(op="/", left=other, right=Literal(value=by)),
            right=Literal(value=times),
        ):
            return (by, times) == (a, factor) and same(x, other)
        case Binary(
            op="*",
            left=Literal(value=times),
            right=Binary(op="/", left=other, right=Literal(value=by)),
        ):
            return (by, times) == (a, factor) and same(x, other)
    return False


def _stays(x: Expr) -> bool:
    return not any(isinstance(e, Assign | Step | Call) for e in every(x))
