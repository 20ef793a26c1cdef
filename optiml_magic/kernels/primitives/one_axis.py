"""P3, axes of one: what a kernel asks of an axis along which its launch has one thread.

``(blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x`` of a launch along x alone is
``blockIdx.x * blockDim.x + threadIdx.x``, as steps that look for a thread's index know it.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.expressions import Binary, Expr, Literal, builtin
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.places import outermost, own_text_only
from optiml_magic.source.expressions import Number

_NOTHING = Literal(None, "0u", 0)  # what a product with a zero is


@primitive
def one_axis(kernel: Kernel) -> Kernel:
    """The kernel without their numbers in its sums and products; it asks for some."""
    own_text_only(kernel)
    numbers = _numbers(kernel)

    def made(expr: Expr) -> Expr | None:
        without = _without(kernel, expr, numbers)
        return None if without is expr else without

    swaps = outermost(kernel.function.body, made)
    if not swaps:
        raise NotLegal("it asks for no axis along which its launch has one thread")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _numbers(kernel: Kernel) -> dict[str, int]:
    """What the built-in variables of such axes are."""
    found, grid = dict[str, int](), kernel.launch.grid
    for at, axis in enumerate("xyz"):
        if kernel.block[at] == 1 and (at >= len(grid) or grid[at].tree == Number(1)):
            found |= {f"threadIdx.{axis}": 0, f"blockDim.{axis}": 1}
            found |= {f"blockIdx.{axis}": 0, f"gridDim.{axis}": 1}
    return found


def _without(kernel: Kernel, expr: Expr, numbers: dict[str, int]) -> Expr:
    """A sum or a product without what it has of these; the same one where it has none."""
    if not isinstance(expr, Binary) or expr.op not in "+*":
        return expr
    left, right = (_without(kernel, side, numbers) for side in (expr.left, expr.right))
    for one, other, old in ((left, right, expr.right), (right, left, expr.left)):
        value = 0 if one is _NOTHING else numbers.get(builtin(one))
        if expr.op == "*" and value == 0:
            return _NOTHING
        alike = kernel.reading.types.get(expr) == kernel.reading.types.get(old)
        if alike and value == (1 if expr.op == "*" else 0):
            return other
    same = left is expr.left and right is expr.right
    return expr if same else Binary(None, expr.op, left, right)
