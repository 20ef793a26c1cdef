"""References put together at random: the kernels made of them give what they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.present import examples
from tests.unit.synthesis.graphs import SIZES
from tests.unit.synthesis.running import run
from tests.unit.synthesis.test_random_graphs import STEPS, masked, written


def _inputs(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    x = rng.integers(-4, 9, (n, m)).astype(np.float32)
    y = rng.integers(1, 6, m).astype(np.float32)
    return {"x": x, "y": y, "z": rng.integers(1, 9, n).astype(np.float32)}


def chained(steps: Sequence[Any]) -> Any:
    """One step after the other, and the sums of rows beside it."""
    chain = tuple(steps)

    def reference(x: Any, y: Any, z: Any) -> Any:
        for step in chain:
            x = step(x, y, z)
        return x, x.sum(axis=1)

    return reference


@given(st.lists(st.sampled_from((*STEPS, written, masked)), min_size=1, max_size=6))
@settings(max_examples=examples(6, 2000), deadline=None)
def test_random_kernels(steps: list[Any]) -> None:
    run(chained(steps), _inputs, SIZES)
