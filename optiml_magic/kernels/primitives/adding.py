"""Floats added to memory by atomic operations, of which a chip may take several at once."""

from __future__ import annotations

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.expressions import Call
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.reading import Access

#: Source: CUDA C++ Programming Guide, "atomicAdd": of two and four floats from 9.0 on.
_SEVERAL = (9, 0)
AT_ONCE = """\
template <int COUNT> __device__ __forceinline__ void add_at_once(float* to, const float* by) {
#if __CUDA_ARCH__ >= 900
    if (COUNT % 4 == 0 && (size_t)to % 16 == 0) {
        const float4* words = reinterpret_cast<const float4*>(by);
        float4* there = reinterpret_cast<float4*>(to);
        for (int at = 0; at < COUNT / 4; ++at) atomicAdd(there + at, words[at]);
        return;
    }
    if (COUNT % 2 == 0 && (size_t)to % 8 == 0) {
        const float2* words = reinterpret_cast<const float2*>(by);
        float2* there = reinterpret_cast<float2*>(to);
        for (int at = 0; at < COUNT / 2; ++at) atomicAdd(there + at, words[at]);
        return;
    }
#endif
    for (int at = 0; at < COUNT; ++at) atomicAdd(to + at, by[at]);
}
"""


def adds(kernel: Kernel, effects: Effects, access: Access) -> bool:
    """Whether a float is added that nobody asks for, and the chip adds several of them at once."""
    chip, call = CHIPS.get(kernel.chip), access.node
    if chip is not None and chip.capability < _SEVERAL:
        return False
    return (
        access.mode == "atomic" and access.op == "+" and access.call is None
        and isinstance(call, Call) and call.function == "atomicAdd"
        and len(call.arguments) == 2 and not call.template
        and access.own in effects.unasked and access.element.name == "float"
    )  # fmt: skip


def adds_alone(kernel: Kernel, effects: Effects, access: Access) -> bool:
    """Whether such a float is added to an array of floats that nothing else touches."""
    array = kernel.reading.arrays.get(access.array)
    alone = [a for a in kernel.reading.accesses if effects.same(a.array, access.array)] == [access]
    floats = array is not None and array.element.name == "float"
    return floats and alone and adds(kernel, effects, access)
