"""Kernels of graphs: how many, over which threads, and that they compute what NumPy does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from optiml_magic.from_reference import NotLoweredError, with_kernel
from optiml_magic.model.task import Task
from tests.present import sampled
from tests.unit.synthesis.running import run

SIZES = ({"n": 40, "m": 33}, {"n": 7, "m": 65}, {"n": 33, "m": 1})
LONG = ({"n": 20000, "m": 3}, {"n": 255, "m": 2}, {"n": 257, "m": 1})


def _floats(rng: np.random.Generator, n: int, m: int) -> dict[str, Any]:
    x = rng.uniform(-2, 2, (n, m)).astype(np.float32)
    at = rng.integers(-m, m, n)
    return {"x": x, "y": rng.uniform(1, 3, m).astype(np.float32), "at": at}


def _kernels(text: str) -> int:
    return text.count("__global__")


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def attention(x: Any) -> Any:
    return softmax(x @ x.T) @ x


def standardised(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def several(x: Any) -> Any:
    return x * 2, x + 1, x.max(axis=1), x.argmin(axis=1)


@pytest.mark.parametrize(
    ("reference", "kernels", "tells"),
    [
        (softmax, 1, "float top = -INFINITY;"),
        (attention, 3, "scratch products f4[n * n]"),
        (standardised, 2, "scratch totals f4[m]"),
        (several, 2, "grid(cdiv(m * n, 256)) block(256)"),
        (lambda x, y: x + y, 1, "grid(cdiv(m, 16), cdiv(n, 16)) block(16, 16)"),
        (lambda x: np.cumsum(x, axis=1), 1, "grid(cdiv(n, 256))"),
        (lambda x: x, 1, "out[i] = x[i];"),
    ],
)
def test_launches_and_their_threads(reference: Any, kernels: int, tells: str) -> None:
    """A row whose statistics are used for each of its elements belongs to one thread."""
    text = run(reference, _floats, ({"n": 100, "m": 33}, *SIZES))
    assert _kernels(text) == kernels, text
    assert tells in text


PARTS = {
    "sum": lambda x: x[:, 0].sum(),
    "dot": lambda x: x[:, 0] @ x[:, -1],
    "gram": lambda x: x.T @ x,
    "variance": lambda x: x[:, 0].var(),
    "argmax": lambda x: x[:, 0].argmax(),
    "argmin": lambda x: np.argmin(abs(x[:, 0] - 1)),
    "running": lambda x: np.cumsum(x[:, 0].astype(np.float64)),
    "running_best": lambda x: np.maximum.accumulate(x[:, 0]) * 2,
}


@pytest.mark.parametrize("reference", sampled(PARTS.values(), 4))
def test_few_long_ones_are_done_in_parts(reference: Any) -> None:
    text = run(reference, _floats, LONG, loose=1e-3)
    assert "scratch" in text


WRITES = {
    "steps": lambda x: _assigned(x, np.s_[1::2]),
    "backwards": lambda x: _assigned(x, np.s_[::-2, 0]),
    "scaled": lambda x, y: np.concatenate([x * y, x[1:], np.zeros((2, len(y)), np.float32)]),
    "stacked": lambda x: np.stack([x, x + 1, x * 2], axis=1).reshape(-1),
    "padded": lambda x: np.pad(x, ((1, 2), (0, 3)), mode="reflect" if len(x) > 3 else "edge"),
    "rows": lambda x, at: x[np.arange(len(at)), at],
    "gathered": lambda x, at: np.take_along_axis(x, at[:, None], axis=1) + x[:, at].sum(),
    "counts": lambda at, y: np.bincount(at + len(y), minlength=300),
    "added": lambda x, at: _added(np.add, x, at),
    "highest": lambda x, at: _added(np.maximum, x, at),
    "diagonal": lambda x: np.diag(x[:, 0]) + np.tril(x[:, :1] @ x[:, :1].T),
    "order": lambda x: (np.sort(x, axis=0), np.argsort(x, axis=1, kind="stable")),
    "rolled": lambda x: np.roll(x, (2, -1), (0, 1)),
    "tiled": lambda x: np.tile(x, (2, 3)) - np.repeat(np.repeat(x, 2, 0), 3, 1),
}


def _assigned(x: Any, key: Any) -> Any:
    out = np.ones_like(x)
    out[key] = x[key] * 2
    out[0] += 1
    return out


def _added(ufunc: Any, x: Any, at: Any) -> Any:
    out = np.zeros_like(x[0])
    ufunc.at(out, at, x[:, 0])
    return out


@pytest.mark.parametrize("reference", sampled(WRITES.values(), 5))
def test_places(reference: Any) -> None:
    run(reference, _floats, SIZES)


DTYPES = (
    "bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
    "bfloat16", "float32", "float64",
)  # fmt: skip


@pytest.mark.parametrize("name", sampled(DTYPES, 4))
def test_numbers_of_every_type(name: str) -> None:
    """Sums wrap as NumPy's do, quotients round down, and extremes are found."""
    dtype: Any = np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)
    signed = dtype.kind in "ifV"

    def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
        low, high = (0, 2) if name == "bool" else (-9 if signed else 0, 10)
        x = rng.integers(low, high, (n, 5)).astype(dtype)
        return {"x": x, "y": rng.integers(1, 2 if name == "bool" else 5, 5).astype(dtype)}

    def whole(x: Any, y: Any) -> Any:
        return (
            x + x * y - y, x // y, x % y, (x > y) | (x == y), np.where(x < y, x, y), x.max(axis=1),
            x.argmin(axis=1), x.sum(axis=0), abs(x), np.sign(x), x**2, (x & y) ^ y, ~x, x << 1,
        )  # fmt: skip

    def floats(x: Any, y: Any) -> Any:
        return x + x * y - y, x / y, np.maximum(x, y), x.max(axis=1), x.argmin(axis=1), abs(x)

    def bools(x: Any, y: Any) -> Any:
        return x & y, x | ~y, x ^ y, x.sum(axis=0), x.any(axis=1), x + y, x * y, np.where(x, 2, 3)

    reference = bools if name == "bool" else whole if dtype.kind in "iu" else floats
    loose = {"float16": 2e-2, "bfloat16": 2e-1}.get(name, 1e-5)
    run(reference, inputs, ({"n": 40}, {"n": 3}), loose=loose)


def test_functions() -> None:
    def reference(x: Any, y: Any) -> Any:
        return (
            x // y, x % y, np.fmod(x, y), np.floor(x) + np.ceil(x) + np.rint(x), np.hypot(x, y),
            np.log1p(abs(x)) * np.expm1(x), np.logaddexp(x, y), np.heaviside(x, 0.5), x**3 + y**-0.5,
            np.arctan2(x, y) + np.sinh(x), np.isnan(np.sqrt(abs(x))), np.sign(x) * np.reciprocal(y),
            np.degrees(x) - np.deg2rad(y), np.power(y, x), np.gcd(7, 21) + np.square(x),
        )  # fmt: skip

    run(reference, _floats, SIZES)


def test_a_chain_that_is_longer_than_pythons_stack() -> None:
    def reference(x: Any) -> Any:
        for step in range(120):
            x = x * 0.999 - x * x * 0.001 + step
        return x

    assert _kernels(run(reference, _floats, ({"n": 4, "m": 3},))) == 1


@pytest.mark.slow
def test_writes_that_read_each_others_rows_are_stored_where_there_are_too_many() -> None:
    def reference(x: Any) -> Any:
        for _ in range(5):
            before, x = x, x.copy()
            x[1:] -= before[:-1]
            x[:, 0] = 1
            last = x[-1]
            last *= 0.5
        return x, x.sum(axis=1)

    run(reference, _floats, SIZES)


def test_what_is_nested_too_deeply_is_refused() -> None:
    def reference(x: Any) -> Any:
        return np.concatenate([x * 2] * 600)

    with pytest.raises(NotLoweredError, match="more intermediate values") as refused:
        run(reference, _floats, SIZES)
    assert "np.concatenate" in str(refused.value)


def test_long_rows_are_merged() -> None:
    def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
        return {"x": rng.integers(0, 300, (2, n)).astype(np.float32)}

    def reference(x: Any) -> Any:
        return np.sort(x, axis=1), np.argsort(x, axis=1, kind="stable")

    text = run(reference, inputs, ({"n": 1100}, {"n": 65}, {"n": 2048}, {"n": 2049}))
    assert _kernels(text) == 7
    assert "require n <= 2048" in text


def test_constants_have_a_name_each() -> None:
    def reference(x: Any) -> Any:
        one, two = np.arange(33, dtype=np.float32) ** 2, np.arange(7, dtype=np.float32)[::-1] ** 3
        return two + 1, one[:7] + two, x[:7, 0] * one[:7]

    run(reference, _floats, ({"n": 40, "m": 33}, {"n": 50, "m": 65}))


def test_a_program_is_the_same_each_time() -> None:
    task = Task(reference=lambda x: (attention(x), standardised(x)), inputs=_floats, sizes=SIZES[0])
    assert len({with_kernel(task).kernel for _ in range(8)}) == 1


def test_stencils_of_stencils_are_stored() -> None:
    """What neighbours would compute for each other over and over lies in memory."""

    def reference(x: Any) -> Any:
        for _ in range(4):
            x = (
                x + np.roll(x, 1, 0) + np.roll(x, -1, 0) + np.roll(x, 1, 1) + np.roll(x, -1, 1)
            ) / 5
        return x

    text = run(reference, _floats, SIZES)
    assert 2 <= _kernels(text) <= 4


def test_numbers_of_python_are_none_of_a_type() -> None:
    """A result in float64 has them in float64, a kernel of float32 as float parameters."""

    def reference(x: Any, by: Any) -> Any:
        return x * by, (x * 0.1).astype(np.float64) * np.float64(by)

    def inputs(rng: np.random.Generator, n: int) -> dict[str, Any]:
        return {"x": rng.uniform(1, 2, n).astype(np.float32), "by": 0.3}

    text = run(reference, inputs, ({"n": 1000}, {"n": 3}), loose=1e-6)
    assert "double by" in text
    assert "0.1f" not in text
    assert "float by" in run(lambda x, by: x * by, inputs, ({"n": 1000},))
