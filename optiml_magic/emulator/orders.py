"""Orders in which the blocks of a grid and the warps of a block get their turns."""

from __future__ import annotations

import random
from math import gcd
from typing import Literal

import numpy as np

from optiml_magic.emulator.crew import Blocks

Order = Literal["forward", "reverse"] | int
"""Forward, backward, or a random order that a number seeds."""


def stride(order: Order, count: int) -> tuple[int, int]:
    """Step and first of an order: the n-th is (n * step + first) modulo ``count``."""
    if order == "forward" or count < 2:
        return 1, 0
    if order == "reverse":
        return count - 1, count - 1
    rng = random.Random(order)  # noqa: S311  # an order, no secret
    step = rng.randrange(1, count)
    while gcd(step, count) > 1:
        step = rng.randrange(1, count)
    return step, rng.randrange(count)


def blocks(total: int, step: int, first: int) -> Blocks | None:
    """The blocks of a stride in order; None for the grid's own."""
    if (step, first) == (1, 0):
        return None
    return (np.arange(total, dtype=np.int64) * step + first) % total
