"""Device memory: allocations far apart in a large address space, each with its own host pages."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.layout import GLOBAL_BASE

Bytes = NDArray[np.uint8]

_FIRST = GLOBAL_BASE + (1 << 32)  # below lie the variables of modules
_GAP = 1 << 24  # unallocated bytes around each allocation: an overrun must not reach a neighbour
_ALIGN = 256


@dataclass(frozen=True)
class Allocation:
    address: int  # a device address
    bytes: Bytes  # exactly the allocated bytes
    name: str = ""  # and what messages call it
    itemsize: int = 1  # bytes of an element, for messages too
    valid: Bytes | None = None  # 1 for each byte that was written; None: the content is defined


class Memory:
    """Global memory. Addresses are never reused, so a stale pointer faults.

    Pages are committed on first use.
    """

    def __init__(self) -> None:
        self._allocations: dict[int, Allocation] = {}
        self._next = _FIRST

    def allocate(
        self, nbytes: int, *, align: int = _ALIGN, name: str = "", itemsize: int = 1
    ) -> int:
        """The device address of ``nbytes`` fresh bytes, which count as defined."""
        if nbytes < 0 or align <= 0 or align & (align - 1):
            raise ValueError(f"cannot allocate {nbytes} bytes aligned to {align}")
        align = max(align, _ALIGN)
        address = -(-self._next // align) * align
        self._allocations[address] = Allocation(address, _aligned(nbytes), name, itemsize)
        self._next = address + nbytes + _GAP
        return address

    def view(self, address: int) -> Bytes:
        """The bytes of the allocation that starts at ``address``; writable, no copy."""
        return self._allocations[address].bytes

    def define(self, address: int, *, defined: bool) -> None:
        """Whether a checked kernel may use what an allocation holds before it wrote there."""
        found = self._allocations[address]
        valid = None if defined else np.zeros(found.bytes.nbytes, np.uint8)
        self._allocations[address] = replace(found, valid=valid)

    def free(self, address: int) -> None:
        """Give an allocation back; KeyError where none starts at ``address``."""
        del self._allocations[address]

    def reset(self) -> None:
        """Free everything."""
        self._allocations.clear()

    @property
    def allocations(self) -> tuple[Allocation, ...]:
        return tuple(self._allocations.values())


def _aligned(nbytes: int) -> Bytes:
    """Host bytes whose alignment is at least what the device address promises."""
    raw = np.empty(nbytes + _ALIGN, np.uint8)
    start = -raw.ctypes.data % _ALIGN
    return raw[start : start + nbytes]
