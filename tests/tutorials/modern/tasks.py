"""Newer C++ and newer CUDA: groups, asynchronous copies, the standard library, hand-written PTX."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4, u4 = np.float32, np.int32, np.uint32


def uniform(rng, *shape):
    return rng.uniform(0.5, 1.5, shape).astype(f4)


def by_key(keys, values):
    sums = np.zeros(10, i4)
    np.add.at(sums, keys, values)
    return sums


def tile_scans(in_):
    padded = np.zeros(-(-in_.size // 16) * 16, i4)
    padded[: in_.size] = in_
    inclusive = np.cumsum(padded.reshape(-1, 16), 1, dtype=i4).ravel()[: in_.size]
    return inclusive, inclusive - in_


def tile_votes(x):
    quads = x.reshape(-1, 4)
    votes = (quads & 1) @ np.array([1, 2, 4, 8])
    each = [(quads > 5).any(1), (quads > 2).all(1), votes]
    named = dict(zip(("any", "all", "votes"), (np.repeat(v, 4) for v in each), strict=True))
    named = {name: v.astype(u4 if name == "votes" else i4) for name, v in named.items()}
    return {**named, "neighbour": np.roll(quads, -1, 1).ravel()}


def warp_stats(x):
    warps = x.reshape(-1, 32)
    xors = np.bitwise_xor.reduce(warps, 1).astype(u4)
    return warps.sum(1, dtype=i4), warps.min(1), xors, (warps == warps[:, :1]).all(1).astype(i4)


def warps(rng):
    x = rng.integers(0, 1000, 512, i4)
    x[64:96] = 7
    return {"x": x, "n": 512}


def flipped(in_):
    out = np.empty_like(in_)
    for r in range(0, in_.shape[0], 8):
        for c in range(0, in_.shape[1], 8):
            out[r : r + 8, c : c + 8] = in_[r : r + 8, c : c + 8][::-1, ::-1]
    return out


def wide_add(a, b):
    wide = [p[:, 0].astype(np.uint64) | p[:, 1].astype(np.uint64) << np.uint64(32) for p in (a, b)]
    return (wide[0] + wide[1]).view(u4).reshape(a.shape), (a[:, 0] >> u4(4)) & u4(511)


def ackermann():
    def value(m, n):
        return (n + 1, n + 2, 2 * n + 3)[m]

    return np.array([value(m, n) for m in (0, 1, 2, 0) for n in range(4)], i4)


def functions(rng):
    return {"x": uniform(rng, 200), "which": rng.integers(0, 3, 200, i4), "n": 200}


tasks = [
    Task(
        HERE / "pipeline_copy.cu",
        reference=lambda in_: in_.sum(1)[:, ::-1],
        inputs=lambda rng: {"in": uniform(rng, 3, 5, 128, 4), "tiles": 5, "blocks": 3},
    ),
    Task(
        HERE / "cg_memcpy_async.cu",
        reference=lambda in_: in_[:, ::-1],
        inputs=lambda rng: {"in": rng.integers(0, 99, (5, 64), i4), "rows": 5},
    ),
    Task(
        HERE / "labeled_partition.cu",
        reference=by_key,
        inputs=lambda rng: {
            "keys": rng.integers(0, 10, 500, i4),
            "values": rng.integers(0, 99, 500, i4),
            "n": 500,
        },
    ),
    Task(
        HERE / "cg_scan.cu",
        reference=tile_scans,
        inputs=lambda rng: {"in": rng.integers(0, 99, 500, i4), "n": 500},
    ),
    Task(
        HERE / "tile_ballot.cu",
        reference=tile_votes,
        inputs=lambda rng: {"x": rng.integers(0, 8, 300, i4), "n": 300},
    ),
    Task(
        HERE / "if_constexpr.cu",
        reference=lambda a: np.stack([a.sum(0), a.max(0), (a != 0).sum(0)]).astype(i4),
        inputs=lambda rng: {"a": rng.integers(0, 5, (20, 100), i4), "rows": 20, "cols": 100},
    ),
    Task(
        HERE / "span_and_array.cu",
        reference=lambda x: np.stack([x.sum(1), (x**2).sum(1), (x**3).sum(1)], 1),
        inputs=lambda rng: {"x": uniform(rng, 50, 20), "rows": 50, "cols": 20},
    ),
    Task(
        HERE / "cuda_atomic.cu",
        reference=lambda x: (
            (x % 2 == 0).sum(keepdims=True, dtype=i4),
            x.max(keepdims=True),
        ),
        inputs=lambda rng: {"x": rng.integers(0, 999, 600, i4), "n": 600},
        outputs={"counter": "", "top": ""},
    ),
    Task(HERE / "warp_reduce_intrinsics.cu", reference=warp_stats, inputs=warps),
    Task(
        HERE / "matrix_view.cu",
        reference=flipped,
        inputs=lambda rng: {"in": uniform(rng, 21, 45), "rows": 21, "cols": 45},
        outputs={"out": ""},
    ),
    Task(
        HERE / "tuned_transpose.cu",
        reference=lambda in_: in_.T,
        inputs=lambda rng: {"in": uniform(rng, 37, 50), "rows": 37, "cols": 50},
    ),
    Task(
        HERE / "inline_ptx.cu",
        reference=wide_add,
        inputs=lambda rng: {
            "a": rng.integers(0, 2**32, (200, 2), u4),
            "b": rng.integers(0, 2**32, (200, 2), u4),
            "n": 200,
        },
    ),
    Task(HERE / "recursion.cu", reference=ackermann),
    Task(
        HERE / "function_pointers.cu",
        reference=lambda x, which: np.choose(which, [2 * x, -x, x * x]),
        inputs=functions,
    ),
    Task(
        HERE / "virtual_shapes.cu",
        reference=lambda size: size**2 * np.where(np.arange(size.size) % 3, 1, 3),
        inputs=lambda rng: {"size": uniform(rng, 200), "n": 200},
    ),
    Task(
        HERE / "spin_lock.cu",
        reference=lambda x: x.sum(keepdims=True),
        inputs=lambda rng: {"x": rng.uniform(0, 1, 500), "n": 500},
    ),
]
