"""Scans and stream compaction."""

from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4, u4 = np.float32, np.int32, np.uint32


def small(rng, n):
    return rng.integers(-9, 10, n, dtype=i4)


def blocks(x, size):
    padded = np.zeros(-(-x.size // size) * size, x.dtype)
    padded[: x.size] = x
    return padded.reshape(-1, size)


def block_scans(in_, size):
    return np.cumsum(blocks(in_, size), axis=1, dtype=in_.dtype).ravel()[: in_.size]


def segments(rng):
    heads = (rng.uniform(size=700) < 0.05).astype(i4)
    return {"x": rng.uniform(0.5, 1.5, 700).astype(f4), "heads": heads, "n": 700}


def segmented(x, heads):
    out, total = np.empty(x.size), 0.0
    for i in range(x.size):
        total = x[i] if heads[i] else total + x[i]
        out[i] = total
    return out


def compact(in_):
    rows = blocks(in_, 128)
    kept = [row[row > 0] for row in rows]
    out = np.zeros(rows.shape, i4)
    for row, values in zip(out, kept, strict=True):
        row[: values.size] = values
    return out.ravel(), np.array([len(k) for k in kept], i4)


def filtered(src):
    count = int((src % 3 == 0).sum())
    return (np.arange(src.size) < count).astype(i4), np.array([count], i4)


def ballot_compact(in_, out):
    rows, wanted = in_.reshape(-1, 32), out.reshape(-1, 32).copy()
    for row, target in zip(rows, wanted, strict=True):
        target[: (row >= 0).sum()] = row[row >= 0]
    return {"out": wanted.ravel(), "kept": (rows >= 0).sum(1).astype(i4)}


tasks = [
    Task(
        HERE / "hillis_steele.cu",
        reference=lambda in_: block_scans(in_, 256),
        inputs=lambda rng: {"in": rng.uniform(0, 1, 1000).astype(f4), "n": 1000},
    ),
    Task(
        HERE / "blelloch.cu",
        reference=lambda g_idata: block_scans(g_idata, 256) - g_idata,
        inputs=lambda rng: {"g_idata": small(rng, 5 * 256), "blocks": 5},
    ),
    Task(
        HERE / "warp_scan.cu",
        reference=lambda in_: block_scans(in_, 512),
        inputs=lambda rng: {"in": small(rng, 1800), "n": 1800},
    ),
    Task(
        HERE / "three_kernel_scan.cu",
        reference=lambda in_: np.cumsum(in_, dtype=i4) - in_,
        inputs=lambda rng: {"in": small(rng, 3333), "n": 3333},
    ),
    Task(
        HERE / "decoupled_lookback.cu",
        reference=lambda in_: np.cumsum(in_, dtype=u4),
        inputs=lambda rng: {"in": rng.integers(0, 1000, 2500, u4), "n": 2500},
    ),
    Task(HERE / "segmented_scan.cu", reference=segmented, inputs=segments),
    Task(
        HERE / "compact_block.cu",
        reference=compact,
        inputs=lambda rng: {"in": small(rng, 900), "n": 900},
    ),
    Task(
        HERE / "filter_aggregated.cu",
        reference=filtered,
        inputs=lambda rng: {"src": rng.integers(0, 1000, 1500, i4), "n": 1500},
    ),
    Task(
        HERE / "ballot_compact.cu",
        reference=ballot_compact,
        inputs=lambda rng: {
            "in": rng.uniform(-1, 1, 640).astype(f4),
            "out": np.full(640, -7, f4),
            "n": 640,
        },
        inout=("out",),
    ),
]
