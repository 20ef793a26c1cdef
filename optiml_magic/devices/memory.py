"""Buffers on a card, and how NumPy's dtypes are kept there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.devices.answers import Hidden
from optiml_magic.devices.base import Array, Buffer, Case
from optiml_magic.devices.maps import digest, mapped
from optiml_magic.devices.module import Place
from optiml_magic.devices.sending import sent
from optiml_magic.errors import MachineError
from optiml_magic.model.dtypes import BFLOAT16, DType
from optiml_magic.model.launch import LaunchPlan

_GUARD = 512  # bytes of canary on each side of a buffer; keeps CuPy's alignment
_BEHIND = 1 << 16  # of it behind a small buffer, which a block too many may read beyond: ours
_SMALL = 1 << 20  # bytes of such a buffer, at most: ours


@dataclass
class Memory:
    """A buffer between two canaries; ``pristine`` is what an input must still hold afterwards.

    ``initial`` is what it holds before a launch, None of an output.

    ``array`` holds ``dtype`` as a type that CuPy knows: see ``stored``.
    """

    whole: Any
    canary: Any  # None: there are no guards
    array: Any
    dtype: DType
    initial: Any = None
    pristine: Any = None
    hidden: Hidden | None = None  # what an output should hold


def guarded(cupy: Any, nbytes: int, dtype: DType, shape: tuple[int, ...]) -> Memory:
    """A new buffer, its content undefined, between canaries of random bytes."""
    canary = cupy.asarray(np.random.default_rng().integers(0, 256, 2 * _GUARD, np.uint8))
    padded = -(-nbytes // 16) * 16
    behind = _BEHIND if nbytes <= _SMALL else _GUARD
    whole = cupy.empty(_GUARD + padded + behind, cupy.uint8)
    whole[:_GUARD] = canary[:_GUARD]
    # The tail guard begins where the data ends, padding included: an off-by-one write is seen.
    tail = whole[_GUARD + nbytes :]
    tail[...] = cupy.resize(canary[_GUARD:], tail.shape)
    like = stored(np.empty(1, dtype))
    array = whole[_GUARD : _GUARD + nbytes].view(like.dtype).reshape(shape + like.shape[1:])
    return Memory(whole, canary, array, dtype)


def starts(
    cupy: Any, case: Case, memories: Mapping[str, Memory], plan: LaunchPlan
) -> dict[str, Any]:
    """What in-out buffers and filled outputs hold before each launch, by name."""
    fills = dict(plan.fills)
    found = {b.name: memories[b.name].initial for b in case.buffers if b.role == "inout"}
    for b in case.buffers:
        if b.role == "output" and b.name in fills:
            filled = np.full_like(b.array, float(fills[b.name]))
            found[b.name] = cupy.asarray(stored(filled))
    return found


def exact(cupy: Any, shape: tuple[int, ...], dtype: DType) -> Memory:
    """An allocation of the driver's, of its exact size, without guards."""
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    pointer = cupy.cuda.MemoryPointer(cupy.cuda.Memory(max(size, 1)), 0)
    like = stored(np.empty(1, dtype))
    array = cupy.ndarray(shape + like.shape[1:], like.dtype, memptr=pointer)
    return Memory(array, None, array, dtype)


def content(cupy: Any, buffer: Buffer, lying: Any | None) -> Any:
    """What a buffer holds first, on the card; ``lying`` is its array, where that lies there."""
    array = sent(cupy, stored(buffer.array)) if lying is None else lying
    if buffer.map is not None:
        array = mapped(buffer.map, array, xp=cupy, dtype=buffer.array.dtype)
    if buffer.digest is not None and digest(array, cupy) != buffer.digest:
        raise MachineError(
            f"the content of `{buffer.name}` on the card is not what it should be",
            fix="run it again",
        )
    return array


def broken_guards(cupy: Any, memories: Mapping[str, Memory]) -> tuple[str, ...]:
    """Which buffers were overrun, and where; their guards are whole again afterwards."""
    broken = []
    for name, memory in memories.items():
        head, tail = memory.whole[:_GUARD], memory.whole[_GUARD + memory.array.nbytes :]
        before, after = memory.canary[:_GUARD], cupy.resize(memory.canary[_GUARD:], tail.shape)
        if bool(cupy.array_equal(head, before) & cupy.array_equal(tail, after)):
            continue
        ahead = cupy.flatnonzero(head != before).tolist()
        behind = cupy.flatnonzero(tail != after).tolist()
        where = [f"{_GUARD - ahead[0]} bytes before its start"] if ahead else []
        where += [f"{behind[0]} bytes behind its end"] if behind else []
        changed = len(ahead) + len(behind)
        broken.append(f"{name}, from {' and '.join(where)}, {changed} changed in all")
        head[...], tail[...] = before, after
    return tuple(broken)


def places(memories: Mapping[str, Memory]) -> dict[str, Place]:
    """Where the arrays lie."""
    return {n: Place(m.array.data.ptr, m.array.nbytes) for n, m in memories.items()}


def copied(memory: Memory) -> Memory:
    """A copy of the array alone, without guards."""
    array = memory.array.copy()
    return Memory(array, None, array, memory.dtype)


def raw(array: Any) -> Any:
    """The bytes of an array on the card."""
    return array.reshape(-1).view(np.uint8)


def stored(array: Array) -> Array:
    """An array in a type of CuPy's: bfloat16 as uint16, a struct as one more axis of its bytes."""
    if array.dtype.names is not None:
        rows = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        return rows.reshape(*array.shape, array.dtype.itemsize)
    return array.view(np.uint16) if array.dtype == BFLOAT16 else array
