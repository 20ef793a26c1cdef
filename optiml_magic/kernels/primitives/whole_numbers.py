"""What locals hold of where a thread stands, and words for it in the types of their places."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from optiml_magic.kernels.expressions import Cast, Expr, Name
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.block_counts import rounded_up
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.grids import form_of, said_alike
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.types import named
from optiml_magic.source.expressions import Expression, Node

_WORD = 4  # bytes of a whole number that an index fits
_ONE = Polynomial.constant(1)


class WholeNumbers:
    """The whole numbers of a kernel that keep what they are declared with."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.lasting = kernel, Effects(kernel).lasting

    def meant(self, expr: Expr) -> Expr:
        """What a local holds that keeps its value, without conversions."""
        expr = self.bare(expr)
        while (
            isinstance(expr, Name) and expr.variable is not None and expr.variable in self.lasting
            and expr.variable.value is not None and not expr.variable.type.depth
            and self._is_whole(expr.variable.type.base)
        ):  # fmt: skip
            expr = self.bare(expr.variable.value)
        return expr

    def bare(self, expr: Expr) -> Expr:
        """An expression without the conversions around it that keep what it is."""
        while isinstance(expr, Cast) and self._is_whole(expr.type):
            expr = expr.operand
        return expr

    def typed(self, expr: Expr, words: str) -> str:
        """Words of 32 bits without a sign, as a number of the type that the expression has."""
        kind = self.kernel.reading.types.get(expr)
        plain = kind is None or not kind.integral or (kind.size == 4 and not kind.signed)
        if kind is None or plain:
            return words
        whole = words if words.replace(".", "").isalnum() else f"({words})"
        return f"({kind.name}){whole}"

    def _is_whole(self, kind: str) -> bool:
        own = named(kind, self.kernel.unit.aliases)
        return kind == "auto" or (own.integral and (own.size or 0) >= _WORD)


def launched_for(kernel: Kernel, tree: Node, widths: Iterable[Node], width: int) -> Iterator[Node]:
    """How many items so many blocks of ``width`` of them may be meant for."""
    for spelled in widths:
        count = rounded_up(tree, spelled, width)
        if count is not None and said_alike(kernel, Expression(count, "").names):
            yield count


def is_below(kernel: Kernel, count: Node, block: str = "blockIdx.x") -> bool:
    """Whether guards keep all blocks along an axis beyond so many from having an effect."""
    bound = form_of(count, kernel.reading.symbols)
    if bound is None:
        return False
    left = bound - Polynomial.symbol(block) - _ONE
    guards = {a.guard for a in kernel.reading.accesses if a.mode != "load" and a.space == "global"}
    symbols = kernel.reading.symbols
    return bool(guards) and all(Ranges(guard, symbols).nonnegative(left) for guard in guards)
