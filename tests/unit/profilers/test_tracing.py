"""Operations of a reference, against counts by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from optiml_magic.problem import prepare
from optiml_magic.profilers import tracing
from optiml_magic.profilers.tracing import traced_flops
from optiml_magic.testing.kernels import NAMES, known_task

RNG = np.random.default_rng(0)
A, B, X = RNG.random((64, 32)), RNG.random((32, 16)), RNG.random(1000)
I = np.arange(1000)  # noqa: E741


def softmax(a: Any) -> Any:
    e = np.exp(a - a.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


def by_element(x: Any) -> Any:
    out = np.empty_like(x)
    for at in range(len(x)):
        out[at] = 2 * x[at]
    return out


@pytest.mark.parametrize(
    ("reference", "inputs", "flops"),
    [
        (lambda a, b: a @ b, {"a": A, "b": B}, 2 * 64 * 32 * 16),
        (lambda a, b: np.dot(a, b), {"a": A, "b": B}, 2 * 64 * 32 * 16),
        (lambda a, b: a.dot(b), {"a": A, "b": B}, 2 * 64 * 32 * 16),
        (lambda a, b: np.einsum("ij,jk->ik", a, b), {"a": A, "b": B}, 2 * 64 * 32 * 16),
        (lambda x: 2 * x + 1, {"x": X}, 2000),
        (lambda x: x.sum(), {"x": X}, 999),
        (lambda a: a.mean(axis=1), {"a": A}, 64 * 31 + 64),
        (softmax, {"a": A}, 3 * 64 * 32 + 64 * 31),
        (lambda a: a.T.copy(), {"a": A}, 0),
        (lambda x: np.where(x > 0.5, 2 * x, 0), {"x": X}, 1000),
        (lambda x: np.concatenate([x, x + 1]), {"x": X}, 1000),
        (lambda x: np.maximum(x, 0), {"x": X}, 0),
        (lambda x: np.convolve(x, np.ones(5), "valid"), {"x": X}, 2 * 996 * 5),
        (lambda x: (3 * x, x - 1), {"x": X}, 2000),
        (lambda i: i * i + 1, {"i": I}, 0),  # whole numbers
        (lambda x, **more: x * more["y"], {"x": X, "y": X}, 1000),
    ],
)
def test_counts(reference: Any, inputs: dict[str, Any], flops: int) -> None:
    assert traced_flops(reference, inputs) == flops


@pytest.mark.parametrize(
    "reference",
    [
        by_element,
        lambda x: np.asarray(x) * 2,
        lambda x: [float(v) for v in x],
        lambda x: np.linalg.inv(x[:900].reshape(30, 30)),
        lambda x: x.no_such_method(),
    ],
)
def test_what_cannot_be_followed_is_unknown(reference: Any) -> None:
    assert traced_flops(reference, {"x": X}) is None


def test_the_inputs_stay_as_they_were() -> None:
    def changes(x: Any) -> Any:
        x += 1
        return x

    before = X.copy()
    assert traced_flops(changes, {"x": X}) == 1000
    assert np.array_equal(X, before)


@pytest.mark.parametrize("name", NAMES)
def test_the_references_of_the_known_kernels_can_be_followed(name: str) -> None:
    task = known_task(name)
    assert task.reference is not None
    assert traced_flops(task.reference, prepare(task, seeds=1).instances[0].values) is not None


def test_a_reference_that_takes_too_long_is_not_followed_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def endless(x: Any) -> Any:
        while True:
            x = x + 1

    monkeypatch.setattr(tracing, "_LONGEST", 0.05)
    assert traced_flops(endless, {"x": X}) is None
