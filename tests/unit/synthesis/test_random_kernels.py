"""References put together at random: the kernels made of them give what they give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optiml_magic.synthesis.lowering import plan
from tests.present import examples
from tests.unit.synthesis.graphs import SIZES
from tests.unit.synthesis.running import run
from tests.unit.synthesis.test_random_graphs import STEPS, masked, written


def _inputs(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    x = rng.integers(-4, 9, (n, m)).astype(np.float32)
    y = rng.integers(1, 6, m).astype(np.float32)
    return {"x": x, "y": y, "z": rng.integers(1, 9, n).astype(np.float32)}


def best(a: Any, *_: Any) -> Any:
    """Where steps lie apart by more than what another order of additions makes of them."""
    return a + np.floor(a * 4 + 0.37).argmax(axis=1)[:, None]


def chained(steps: Sequence[Any]) -> Any:
    """One step after the other, and the sums of rows beside it."""
    chain = tuple(steps)

    def reference(x: Any, y: Any, z: Any) -> Any:
        for step in chain:
            x = step(x, y, z)
        return x, x.sum(axis=1)

    return reference


#: When something is long, a launch is worth it, and rows are enough to have a thread each: what is
#: decided by sizes at hand is never what is right.
DECISIONS = (
    {},
    {"_LONG": 3, "_RUNS": (2, 4), "_FEW": 1 << 20, "_SORTED": (2, 2)},
    {"_WORTH": 0.0, "_SHARE": 0.0, "_AGAIN": 1.0},
    {"_ROWS": 1, "_THREADS": 1, "_WORTH": 4.0},
    {"_WORTH": 1e9, "_APART": 2, "_LONG": 2, "_RUNS": (2, 2), "_SORTED": (1, 3)},
)


@given(
    st.lists(st.sampled_from((*STEPS, best, written, masked)), min_size=1, max_size=6),
    st.sampled_from(DECISIONS),
)
@settings(max_examples=examples(6, 2000), deadline=None)
def test_random_kernels(steps: list[Any], decisions: dict[str, Any]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name, value in decisions.items():
            patch.setattr(plan, name, value)
        run(chained(steps), _inputs, SIZES)
