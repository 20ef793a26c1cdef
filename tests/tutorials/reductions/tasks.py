"""Reductions: the classic steps, warps, groups, atomics, structs."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4 = np.float32, np.int32


def uniform(rng, *shape):
    return rng.uniform(-1.0, 1.0, shape).astype(f4)


def positive(rng, *shape):
    return rng.uniform(0.5, 1.5, shape).astype(f4)


def seven_steps(x):
    each, pairs = x.reshape(-1, 128).sum(1), x.reshape(-1, 256).sum(1)
    return each, each, each, pairs, pairs, x.reshape(-1, 4, 256).sum((0, 2))


def dot_of_blocks(a, b):
    products = np.zeros(4096)
    products[:3000] = a * b
    return products.reshape(2, 16, 128).sum((0, 2))


def argmax(x):
    at = int(np.argmax(x))
    bits = int(np.array(x[at], f4).view(np.uint32))
    key = bits ^ 0xFFFFFFFF if bits >> 31 else bits | 0x80000000
    return np.array([key << 32 | (0xFFFFFFFF - at)], np.uint64)


def votes(x, threshold):
    above = np.zeros(-(-x.size // 128) * 128, bool)
    above[: x.size] = x > f4(threshold)
    warps = above.reshape(-1, 32).sum(1)
    most = above.reshape(-1, 128).sum(1).max()
    return np.array([above.sum(), most, (warps == 32).sum(), (warps == 0).sum()], i4)


def some_large(rng):
    x = uniform(rng, 1000)
    x[:40] += 3
    x[200:300] -= 3
    return {"x": x, "threshold": 0.25, "n": 1000}


tasks = [
    Task(
        HERE / "reduce_steps.cu",
        reference=seven_steps,
        inputs=lambda rng: {"x": positive(rng, 4096), "n": 4096},
    ),
    Task(
        HERE / "two_pass_sum.cu",
        reference=lambda x: x.sum(keepdims=True),
        inputs=lambda rng: {"x": positive(rng, 5000), "n": 5000},
    ),
    Task(
        HERE / "last_block_sum.cu",
        reference=lambda x: x.sum(keepdims=True),
        inputs=lambda rng: {"x": rng.uniform(0, 1, 3000), "n": 3000},
    ),
    Task(
        HERE / "cg_reduce.cu",
        reference=lambda in_: np.array([in_.sum(), in_.max()], i4),
        inputs=lambda rng: {"in": rng.integers(-99, 999, 2500, i4), "n": 2500},
    ),
    Task(
        HERE / "cg_tile_sum.cu",
        reference=lambda a, b: (a.reshape(-1, 8).sum(1), b.reshape(-1, 8).sum(1)),
        inputs=lambda rng: {
            "a": rng.integers(-99, 99, 8 * 61, i4),
            "b": positive(rng, 8 * 61),
            "rows": 61,
            "sizeof_int": 4,
        },
    ),
    Task(
        HERE / "dot_kahan.cu",
        reference=lambda a, b: np.array([a @ b]),
        inputs=lambda rng: {"a": positive(rng, 4000), "b": positive(rng, 4000), "n": 4000},
    ),
    Task(
        HERE / "dot_pasted.cu",
        reference=dot_of_blocks,
        inputs=lambda rng: {"a": positive(rng, 3000), "b": positive(rng, 3000)},
    ),
    Task(
        HERE / "argmax_packed.cu",
        reference=argmax,
        inputs=lambda rng: {"x": uniform(rng, 2000), "n": 2000},
    ),
    Task(
        HERE / "atomic_max_float.cu",
        reference=lambda x, y: (x.max(keepdims=True), y.max(keepdims=True)),
        inputs=lambda rng: {"x": uniform(rng, 500), "y": rng.normal(size=500), "n": 500},
    ),
    Task(
        HERE / "mean_variance.cu",
        reference=lambda x: (x.mean(1), x.var(1)),
        inputs=lambda rng: {"x": 5 + uniform(rng, 9, 300), "rows": 9, "cols": 300},
    ),
    Task(HERE / "ballot_count.cu", reference=votes, inputs=some_large),
    Task(
        HERE / "column_min_max.cu",
        reference=lambda a: (a.min(0), a.max(0)),
        inputs=lambda rng: {
            "a": rng.integers(-(2**31), 2**31, (37, 50), dtype=i4),
            "rows": 37,
            "cols": 50,
        },
    ),
]
