"""Wanted outputs on a card, where the kernel that is judged by them runs as well.

A kernel may read more memory than it was given. So they lie under a noise that only a key repeats,
which stays in the host, and whatever held them in the open is given back to the driver.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from optiml_magic.devices.base import Array
from optiml_magic.devices.noise import noise
from optiml_magic.devices.sending import sent
from optiml_magic.model.dtypes import DType

T = TypeVar("T")


@dataclass(frozen=True)
class Hidden:
    """An array that only ``Answers`` can read."""

    masked: Any  # bytes
    key: int
    dtype: DType
    shape: tuple[int, ...]


class Answers:
    """Hides arrays, and shows them for the length of one call."""

    def __init__(self, cupy: Any) -> None:
        self._cp = cupy
        self._pool = cupy.cuda.MemoryPool()

    def hide(self, array: Array) -> Hidden:
        """The array on the card, unreadable; of a type that CuPy knows."""
        cp, key = self._cp, secrets.randbits(62)
        masked = cp.empty(array.nbytes, cp.uint8)
        with cp.cuda.using_allocator(self._pool.malloc):
            plain = sent(cp, array).reshape(-1).view(np.uint8)
            cp.bitwise_xor(plain, self._noise(key, array.nbytes), out=masked)
            cp.cuda.Device().synchronize()
            del plain
        self._pool.free_all_blocks()
        return Hidden(masked, key, array.dtype, array.shape)

    def shown(self, hidden: Hidden, use: Callable[[Any], T]) -> T:
        """What ``use`` makes of the array; it must keep nothing that lies on the card."""
        with self._cp.cuda.using_allocator(self._pool.malloc):
            raw = hidden.masked ^ self._noise(hidden.key, hidden.masked.size)
            found = use(raw.view(hidden.dtype).reshape(hidden.shape))
            del raw
        self._pool.free_all_blocks()
        return found

    def _noise(self, key: int, nbytes: int) -> Any:
        return noise(self._cp, key, nbytes)
