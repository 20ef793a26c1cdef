"""CuPy's reductions, compiled quickly, and in two steps where they are large.

Where CuPy has no compiled reduction it makes one of CUB's templates: 3 s of NVRTC for each kind at
its first use on a machine, on the host of an H200, where one of its own templates takes 0.1 s. A
search asks for a dozen, of arrays that are looked at a few times, so its own are quicker.

Its own give each element of the result one block of threads, so a whole array becomes one number in
a single block, however large the card: the sum of 33 million floats then takes as long as hundreds
of passes over them. In two steps the rows of a table go to a block each, and what they give to one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

LARGE = 1 << 22
"""Elements from which on two steps are faster, the kernels for them included; ours."""
_ROW = 4096  # elements of one block


def compile_quickly(cupy: Any) -> list[Any]:
    """From now on, in this process; what was set before, for whoever wants it again."""
    accelerator = _accelerator(cupy)
    before: list[Any] = accelerator.get_reduction_accelerators() if accelerator else []
    _set(accelerator, [])
    return before


@contextmanager
def quickly_compiled(cupy: Any) -> Iterator[None]:
    """For the length of a ``with`` statement, since the process is the user's."""
    before = compile_quickly(cupy)
    try:
        yield
    finally:
        _set(_accelerator(cupy), before)


def reduced(reduce: Callable[..., Any], array: Any, xp: Any) -> Any:
    """``reduce`` of all elements: a sum, a largest, any or all, by its function of ``xp``."""
    flat = array.reshape(-1)
    if xp is np or flat.size < LARGE:
        return reduce(flat)
    even = flat.size // _ROW * _ROW
    rows = reduce(flat[:even].reshape(-1, _ROW), axis=1)
    if even < flat.size:
        rows = xp.concatenate([rows, reduce(flat[even:]).reshape(1)])
    return reduce(rows)


def are_large(array: Any) -> tuple[bool, bool]:
    """Whether its elements, and its bytes, are reduced in two steps."""
    return array.size >= LARGE, array.nbytes >= LARGE


def counted(array: Any, xp: Any) -> int:
    """How many of an array of booleans are true."""
    if xp is np or array.size < LARGE:
        return int(xp.count_nonzero(array))
    return int(reduced(xp.sum, array, xp))


def place_of_largest(array: Any, xp: Any) -> int:
    """The flat index of the first largest element; of an array without NaN, and not empty."""
    flat = array.reshape(-1)
    if xp is np or flat.size < LARGE:
        return int(flat.argmax())
    even = flat.size // _ROW * _ROW
    row = int(xp.max(flat[:even].reshape(-1, _ROW), axis=1).argmax()) * _ROW
    place = row + int(flat[row : row + _ROW].argmax())
    if even < flat.size:
        last = even + int(flat[even:].argmax())
        place = last if bool(flat[last] > flat[place]) else place
    return place


def same_bytes(one: Any, two: Any, xp: Any) -> bool:
    """Whether two flat arrays of bytes, as long as each other, are equal."""
    if xp is np or one.size < LARGE:
        return bool(xp.array_equal(one, two))
    even = one.size // 8 * 8
    words = one[:even].view(np.uint64) == two[:even].view(np.uint64)
    return bool(reduced(xp.all, words, xp)) and bool(xp.array_equal(one[even:], two[even:]))


def _accelerator(cupy: Any) -> Any:
    """Where CuPy keeps the choice; None where it keeps it elsewhere: slower, and as right."""
    return getattr(getattr(cupy, "_core", None), "_accelerator", None)


def _set(accelerator: Any, chosen: list[Any]) -> None:
    if accelerator is not None:
        accelerator.set_reduction_accelerators(chosen)
