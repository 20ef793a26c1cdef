"""Very many small problems at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_HAAR = "NVIDIA/cuda-samples Samples/5_Domain_Specific/dwtHaar1D"
_SNAKE = "zjin-lcf/HeCBench snake-cuda/main.cu"
_BINOMIAL = "zjin-lcf/HeCBench binomial-cuda/kernel.cu"
_WORDS = 6
_BASES = 16 * _WORDS
_STEPS = 256
_N = 8
_LENGTH = 512


def _pairs(rng: np.random.Generator, count: int) -> Values:
    return {"a": uniform(rng, count, 4, 4), "b": uniform(rng, count, 4, 4), "count": count}


def _definite(rng: np.random.Generator, count: int) -> Values:
    half = uniform(rng, count, _N, _N)
    a = half @ half.transpose(0, 2, 1) + np.eye(_N, dtype=np.float32)
    return {"a": a, "count": count}


def cholesky(a: Any) -> Any:
    return np.linalg.cholesky(a)


def _signals(rng: np.random.Generator, signals: int) -> Values:
    return {"x": uniform(rng, signals, _LENGTH), "signals": signals}


def haar(x: Any) -> Any:
    out, average = np.zeros_like(x), x
    while average.shape[1] > 1:
        even, odd = average[:, ::2], average[:, 1::2]
        average = (even + odd) * 0.70710678
        out[:, average.shape[1] : 2 * average.shape[1]] = (even - odd) * 0.70710678
    out[:, 0] = average[:, 0]
    return out


def _sequences(rng: np.random.Generator, pairs: int) -> Values:
    """Each read and its place in a genome: a base of some words differs, and half are shifted."""
    reads = rng.integers(0, 1 << 32, (pairs, _WORDS), dtype=np.uint32)
    at = np.uint32(2) * rng.integers(0, 16, reads.shape, dtype=np.uint32)
    other = rng.integers(0, 8, reads.shape, dtype=np.uint32)
    places = reads ^ (np.where(other < 4, other, np.uint32(0)) << at)
    carried = np.pad(places[:, 1:], ((0, 0), (0, 1)))
    shifted = places >> np.uint32(2) | carried << np.uint32(30)
    places = np.where(rng.integers(0, 2, (pairs, 1), dtype=np.uint8) > 0, shifted, places)
    return {"reads": reads, "places": places, "pairs": pairs, "band": 3}


def _bases(words: Any) -> Any:
    parts = [words >> np.uint32(2 * k) & np.uint32(3) for k in range(16)]
    return np.stack(parts, axis=2).reshape(len(words), _BASES)


def snake(reads: Any, places: Any, band: Any) -> Any:
    band = int(band)
    one, other = _bases(reads), _bases(places)
    padded = np.pad(other.astype(np.int32), ((0, 0), (band, band)), constant_values=-1)
    longest = np.zeros((len(one), _BASES + 1), np.int64)
    for shift in range(2 * band + 1):
        run = np.zeros(len(one), np.int64)
        for at in range(_BASES - 1, -1, -1):
            run = np.where(one[:, at] == padded[:, at + shift], run + 1, 0)
            longest[:, at] = np.maximum(longest[:, at], run)
    column, edits = np.zeros(len(one), np.int64), np.zeros(len(one), np.int64)
    for _ in range(band + 1):
        column = column + longest[np.arange(len(one)), column]
        edits = edits + (column < _BASES)
        column = np.minimum(column + 1, _BASES)
    return (edits <= band).astype(np.int32)


def _calls(rng: np.random.Generator, options: int) -> Values:
    """The terms of each, and what a step of its tree is: computed beforehand, as they all are."""
    years = rng.uniform(0.25, 10.0, options)
    step = 0.3 * np.sqrt(years / _STEPS)
    growth = np.exp(0.02 * years / _STEPS)
    chance = (growth - np.exp(-step)) / (np.exp(step) - np.exp(-step))
    made = {"step": step, "up": chance / growth, "down": (1 - chance) / growth}
    return {
        "price": uniform(rng, options, low=5.0, high=30.0),
        "strike": uniform(rng, options, low=1.0, high=60.0),
        **{name: values.astype(np.float32) for name, values in made.items()},
        "options": options,
    }  # fmt: skip


def _folded(xp: Any, price: Any, strike: Any, step: Any, up: Any, down: Any) -> Any:
    leaves = step[:, None] * xp.arange(-_STEPS, _STEPS + 1, 2).astype(price.dtype)
    value = (price[:, None] * xp.exp(leaves) - strike[:, None]).clip(0)
    for _ in range(_STEPS):
        value = up[:, None] * value[:, 1:] + down[:, None] * value[:, :-1]
    return value[:, 0]


def binomial(price: Any, strike: Any, step: Any, up: Any, down: Any) -> Any:
    return _folded(np, price, strike, step, up, down)


TASKS = (
    Entry(
        "small_products", "small", lambda a, b: a @ b, _pairs,
        full={"count": 1 << 20}, small={"count": 4096}, checked={"count": 1003},
        floor=lambda count: Floor(192 * count, flops=128 * count),
        torch=lambda t, a, b: t.bmm(a, b), libraries={"cuBLAS": lambda cp, a, b: cp.matmul(a, b)},
    ),
    Entry(
        "cholesky", "small", cholesky, _definite,
        full={"count": 1 << 19}, small={"count": 1024}, checked={"count": 261},
        # The upper half is read by nobody, and all of the result is written.
        floor=lambda count: Floor(
            4 * (_N * (_N + 1) // 2 + _N * _N) * count, flops=_N**3 // 3 * count, special=_N * count
        ),
        outputs={"lower": "f4[count, 8, 8]"},
        torch=lambda t, a: t.linalg.cholesky_ex(a).L,
    ),
    Entry(
        "haar", "small", haar, _signals,
        full={"signals": 1 << 16}, small={"signals": 128}, checked={"signals": 17},
        floor=lambda signals: Floor(8 * _LENGTH * signals, flops=4 * _LENGTH * signals),
        source=_HAAR, opened=True,
    ),
    Entry(
        "snake", "small", snake, _sequences,
        full={"pairs": 1 << 22}, small={"pairs": 1024}, checked={"pairs": 1003},
        floor=lambda pairs: Floor(4 * (2 * _WORDS + 1) * pairs),
        outputs={"accepted": "i4[pairs]"},
        source=_SNAKE, opened=True,
    ),
    Entry(
        "binomial", "small", binomial, _calls,
        full={"options": 1 << 15}, small={"options": 32}, checked={"options": 17},
        # A multiplication and an fma for each inner place of the tree.
        floor=lambda options: Floor(
            24 * options, flops=3 * options * _STEPS * (_STEPS + 1) // 2,
            special=options * (_STEPS + 1),
        ),
        outputs={"call": "f4[options]"},
        libraries={"CuPy": _folded}, source=_BINOMIAL, opened=True,
    ),
)  # fmt: skip
