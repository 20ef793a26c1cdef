"""Extremes of two neighbouring items at once, by integers in the halves of a 32-bit word.

A number stands at the upper end of its half: a byte has whatever lies below it in memory beneath
it, which decides only between equal bytes. So one permutation brings the numbers of two items, of
either sign, and none is extended. Of compute capability 9.0 on the least or greatest of both halves
is one instruction; before, it takes several.
Sources: PTX ISA, ``min``, ``max`` (.u16x2, .s16x2), ``prmt``; CUDA Math API, "SIMD Intrinsics".
"""

from __future__ import annotations

from collections.abc import Iterable

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.pair_lines import Lines
from optiml_magic.kernels.primitives.pair_values import Element, Extreme, Value, constant
from optiml_magic.kernels.types import CType

_SIMD = (9, 0)  # compute capability, of which min and max of halves are one instruction
_HALF = 2  # bytes
_BOTH = 0x10001

ENDING = """
// Two halves that end with these bytes of a row.
__device__ __forceinline__ unsigned pair_ending(const void* row, int first, int second) {
    const unsigned* words = static_cast<const unsigned*>(row);
    const int low = first % 4, high = second % 4;
    const int below = (low + 3) % 4 | ((high + 3) % 4 | 4) << 8;
    return __byte_perm(words[first / 4], words[second / 4], below | low << 4 | (high | 4) << 12);
}"""
HELPERS = (ENDING,)
NAMES = frozenset({"pair_ending"})


def has_integer_pairs(kernel: Kernel) -> bool:
    """Whether the chip takes extremes of integers in halves by one instruction."""
    chip = CHIPS.get(kernel.chip)
    return chip is not None and chip.capability >= _SIMD


class ExtremeLines(Lines):
    """The lines that find some extremes of numbers of one type, at the upper ends of halves."""

    ends = (1, 3)

    def __init__(self, item: str, fresh: str, roots: Iterable[Value]) -> None:
        roots = [*roots]
        super().__init__(item, fresh, roots)
        kinds = {value.kind for value in self.values if isinstance(value, Element)}
        if len(kinds) != 1:
            raise NotLegal("it takes extremes of numbers of several types")
        (self.kind,) = kinds
        if not any(isinstance(value, Extreme) for value in self.values):
            raise NotLegal("an item takes no extremes")

    def stored(self, value: Value, kind: CType) -> str:
        if kind.size != self.kind.size:
            raise NotLegal("what items store is wider or narrower than what they load")
        return self.name(value)

    def name(self, value: Value) -> str:
        known = constant(value)
        if known is None:
            return super().name(value)
        width = self._size
        bits = (known & (1 << 8 * width) - 1) << 8 * (_HALF - width)
        return f"{bits * _BOTH:#x}u"

    @property
    def _size(self) -> int:
        return self.kind.size or 0

    def _made(self, value: Value) -> str:
        match value:
            case Element():
                first, second = (self._end_of(value, item) for item in (0, 1))
                return self._let(value, f"pair_ending({value.array}{value.row}, {first}, {second})")
            case Extreme():
                return self._extreme(value)
        raise NotLegal("whole numbers are used for more than extremes")

    def _end_of(self, value: Element, item: int) -> str:
        """Where in its row the last byte of a number is, of one of both items."""
        at = value.at + item * value.step + 1
        return f"{self.item} * {value.step * self._size} + {at * self._size - 1}"

    def _combined(self, which: str, left: str, right: str) -> str:
        return f"__v{which}{'s' if self.kind.signed else 'u'}2({left}, {right})"
