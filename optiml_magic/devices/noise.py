"""Random bytes on a card, made there."""

from __future__ import annotations

from typing import Any


def noise(cupy: Any, seed: int, nbytes: int) -> Any:
    """So many bytes that follow from the seed alone.

    Of Philox, whose state is a counter and a key: the default generator of CuPy skips ahead for
    each of its threads, which takes longer than a small kernel with all of its checks.
    """
    generator = cupy.random.Generator(cupy.random.Philox4x3210(seed))
    words = generator.integers(0, 2**32, -(-nbytes // 4), dtype=cupy.uint32)
    return words.view(cupy.uint8)[:nbytes]
