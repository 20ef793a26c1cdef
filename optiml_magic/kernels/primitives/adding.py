"""Floats added to memory by atomic operations, of which a chip may take several at once."""

from __future__ import annotations

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.expressions import Call
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.reading import Access

_SEVERAL = (9, 0)  # source: CUDA C++ Programming Guide, "atomicAdd"


def adds_alone(kernel: Kernel, effects: Effects, access: Access) -> bool:
    """Whether a float is added that nobody asks for, where the chip adds several of them at once.

    Nothing else touches its array.
    """
    chip, call = CHIPS.get(kernel.chip), access.node
    if chip is not None and chip.capability < _SEVERAL:
        return False
    array = kernel.reading.arrays.get(access.array)
    plain = (
        access.mode == "atomic" and access.op == "+" and access.call is None
        and isinstance(call, Call) and call.function == "atomicAdd"
        and len(call.arguments) == 2 and access.own in effects.unasked
    )  # fmt: skip
    floats = array is not None and access.element.name == array.element.name == "float"
    alone = [a for a in kernel.reading.accesses if effects.same(a.array, access.array)] == [access]
    return plain and floats and alone
