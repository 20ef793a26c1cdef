"""P3, only digits: a thread's index is its own rest by a number that it never reaches.

Of a launch with 24 blocks along z, ``blockIdx.z / 24`` is 0 and ``blockIdx.z % 24`` is
``blockIdx.z``, as where the images of a batch are counted and there is one.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import Binary, Cast, Expr, Literal, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.cutting import uses
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import bare, outermost, own_text_only
from optiml_magic.source.expressions import Number
from optiml_magic.source.folding import folded

_WORD = 4  # bytes of an index and of its quotients


@primitive
def only_digits(kernel: Kernel) -> Kernel:
    """The kernel without quotients and rests by as many as there are threads along an axis."""
    kernel = kernel.settled()
    own_text_only(kernel)
    most, effects = _most(kernel), Effects(kernel)
    swaps = outermost(kernel.function.body, lambda expr: _made(kernel, effects, expr, most))
    if not swaps:
        raise NotLegal("it divides no index by as many threads as there are")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _most(kernel: Kernel) -> dict[Expr, int]:
    """What stands for a thread's index along an axis, and how many of them the launch has."""
    found = dict[Expr, int]()
    for axis, extent, count in zip("xyz", kernel.block, kernel.launch.grid, strict=False):
        blocks = folded(count).tree
        if extent is not None and isinstance(blocks, Number):
            found |= dict.fromkeys(uses(kernel, axis).whole, extent * blocks.value)
    return found


def _made(kernel: Kernel, effects: Effects, expr: Expr, most: dict[Expr, int]) -> Expr | None:
    """What a quotient or a rest is, or None where it is not known."""
    if not isinstance(expr, Binary) or expr.op not in "/%":
        return None
    by, kind = bare(expr.right), kernel.reading.types.get(expr)
    count = most.get(_index(kernel, effects, expr.left))
    number = by.value if isinstance(by, Literal) and isinstance(by.value, int) else 0
    if count is None or number < count or kind is None or not kind.integral or kind.size != _WORD:
        return None
    if expr.op == "%":
        return expr.left if kernel.reading.types.get(expr.left) == kind else None
    return Literal(None, "0" if kind.signed else "0u", 0)


def _index(kernel: Kernel, effects: Effects, expr: Expr) -> Expr:
    """What a whole number holds that is a local as long as it lasts, without casts."""
    plain, types = bare(expr), kernel.reading.types
    while (kind := types.get(plain)) is not None and kind.integral:
        if isinstance(plain, Cast):
            plain = bare(plain.operand)
        elif (
            isinstance(plain, Name) and plain.variable is not None
            and plain.variable in effects.lasting and plain.variable.value is not None
        ):  # fmt: skip
            plain = bare(plain.variable.value)
        else:
            break
    return plain
