"""Arrays from host memory to a card."""

from __future__ import annotations

from typing import Any

from optiml_magic.devices.base import Array


def sent(cupy: Any, array: Array) -> Any:
    """A new array on the card; of a type that CuPy knows.

    ``cupy.asarray`` copies it into page-locked memory first, which takes longer than the transfer
    and stays in a pool where a kernel could read it: an answer must not lie there.
    """
    made = cupy.empty(array.shape, array.dtype)
    made.set(array)
    return made
