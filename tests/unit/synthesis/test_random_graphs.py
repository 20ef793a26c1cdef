"""References put together at random: their graphs give what they give, at other sizes too."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.present import examples
from tests.unit.synthesis.graphs import agree

#: Each takes a matrix [n, m] and the inputs, and gives one [n, m] in floats.
STEPS = (
    lambda a, y, _: a + y,
    lambda a, y, _: y - a * 2,
    lambda a, _, z: a * z[:, None] / 8,
    lambda a, y, _: np.where(a > y, a, y),
    lambda a, *_: np.tanh(a),
    lambda a, *_: np.sqrt(abs(a)),
    lambda a, *_: np.clip(a, -3, 3),
    lambda a, *_: a - a.mean(axis=0),
    lambda a, *_: a - a.max(axis=1, keepdims=True),
    lambda a, *_: a / (1 + abs(a).sum()),
    lambda a, *_: a + np.minimum.reduce(a, axis=0),
    lambda a, *_: np.cumsum(a, axis=1),
    lambda a, *_: np.sort(a, axis=0),
    lambda a, *_: a[::-1, ::-1],
    lambda a, *_: a.T.reshape(-1).reshape(a.shape),
    lambda a, *_: a.reshape(-1)[::-1].reshape(a.shape),
    lambda a, *_: np.roll(a, 2, axis=1),
    lambda a, *_: np.pad(a, 1, mode="edge")[2:, :-2],
    lambda a, *_: np.pad(a, 1)[:-2, 1:-1] + a,
    lambda a, *_: np.repeat(a, 2, axis=0)[::2],
    lambda a, *_: np.concatenate([a[1:], a[:1]]),
    lambda a, *_: np.stack([a, a * 2], axis=2)[..., 1],
    lambda a, *_: np.tanh(a) @ np.tanh(a).T @ a / 8,
    lambda a, y, _: np.einsum("ij,j->ij", a, y),
    lambda a, y, _: a + np.outer(a[:, 0], y),
    lambda a, *_: a[np.arange(len(a))] + np.arange(a.shape[1]),
    lambda a, *_: np.tril(a),
    lambda a, *_: np.take_along_axis(a, np.argsort(a, axis=1, kind="stable"), axis=1),
    lambda a, *_: (a + np.float32(1)) / a.shape[1],
)


def best(a: Any, *_: Any) -> Any:
    return a + a.argmax(axis=1)[:, None]


def written(a: Any, y: Any, z: Any) -> Any:
    out = a.copy()
    out[1:] -= a[:-1]
    out[:, 0] = z
    row = out[-1]
    row *= 0.5
    return out


def masked(a: Any, *_: Any) -> Any:
    out = np.zeros_like(a)
    np.maximum(a, 1, out=out)
    out[a > 2] = -1
    return out


@given(
    st.lists(st.sampled_from((*STEPS, best, written, masked)), min_size=1, max_size=6),
)
@settings(max_examples=examples(40, 2000), deadline=None)
def test_random_references(steps: list[Any]) -> None:
    chain = tuple(steps)

    def reference(x: Any, y: Any, z: Any) -> Any:
        for step in chain:
            x = step(x, y, z)
        return x, x.sum(axis=1)

    agree(reference)
