"""Tests of whole numbers against a quotient of floats, as tests of whole numbers.

``threadIdx.x < blockDim.x / 32.f`` asks in FasterTransformer, and in what was copied from it,
whether a thread stands for a warp. Powers of two alone divide, so that the quotient is exact.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    MIRRORED,
    Binary,
    Cast,
    Expr,
    Literal,
    builtin,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.places import reached
from optiml_magic.kernels.tree import Block, Function, expressions
from optiml_magic.kernels.types import named


@primitive
def whole_tests(kernel: Kernel) -> Kernel:
    """The kernel, and the functions that it calls, with such tests in whole numbers."""
    bodies: dict[Function, Block] = {}
    for function in (kernel.function, *reached(kernel.unit, kernel.function)):
        swaps = dict[Node, Node]()
        for e in expressions(function.body):
            if isinstance(e, Binary) and e.op in MIRRORED:
                swaps |= _whole(kernel, function, e)
        if swaps:
            bodies[function] = edited(function.body, swaps)
    if not bodies:
        raise NotLegal("no test compares with a quotient of floats")
    return kernel.with_bodies(bodies)


def _whole(kernel: Kernel, function: Function, test: Binary) -> dict[Node, Node]:
    """The quotient of a test and what it is compared with, rounded as the test asks for it."""
    for quotient, other, op in (
        (test.right, test.left, test.op),
        (test.left, test.right, MIRRORED[test.op]),
    ):
        parts = _quotient(kernel, quotient)
        if parts is not None and _is_whole(kernel, function, other):
            size, by = parts
            above = f"{size} + {by - 1}" if op in ("<", ">=") else size
            return {quotient: text(f"(int)(({above}) / {by})")}
    return {}


def _quotient(kernel: Kernel, expr: Expr) -> tuple[str, int] | None:
    """The extent of a block and the power of two that it is divided by, as a float."""
    if not isinstance(expr, Binary) or expr.op != "/" or not isinstance(expr.right, Literal):
        return None
    left, by, floating = expr.left, expr.right.value, isinstance(expr.right.value, float)
    if isinstance(left, Cast):
        kind = named(left.type, kernel.unit.aliases)
        if not kind.floating or (kind.size or 0) < 4:  # a half does not hold all of 1024
            return None
        left, floating = left.operand, True
    size = builtin(left)
    if not floating or not size.startswith("blockDim.") or by is None or isinstance(by, bool):
        return None
    whole = int(by)
    return (size, whole) if whole == by and whole > 0 and whole & (whole - 1) == 0 else None


def _is_whole(kernel: Kernel, function: Function, expr: Expr) -> bool:
    """Whether it is a whole number, in a template whatever its arguments are."""
    if builtin(expr):
        return True
    kind = kernel.reading.types.get(expr)
    plain = not function.template or function is kernel.function
    return plain and kind is not None and kind.integral and kind.lanes == 1
