"""Loads at places that the data tell: sparse rows, tables, neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor, Gather

_ENCODER = "karpathy/llm.c dev/cuda/encoder_forward.cu"
_JACCARD = "zjin-lcf/HeCBench jaccard-cuda/main.cu"


def _starts(rng: np.random.Generator, rows: int, mean: int) -> Any:
    """Where rows begin: from none to twice the mean in each, and ``mean * rows`` in all."""
    lengths = rng.integers(0, mean + 1, rows // 2)
    both = np.concatenate([mean + lengths, mean - lengths, np.full(rows % 2, mean)])
    return np.concatenate([[0], np.cumsum(rng.permutation(both))]).astype(np.int32)


def _sparse(rng: np.random.Generator, rows: int, mean: int) -> Values:
    starts = _starts(rng, rows, mean)
    columns = rng.integers(0, rows, rows * mean, dtype=np.int32)
    values, x = uniform(rng, rows * mean, low=0.0), uniform(rng, rows, low=0.0)
    return {"starts": starts, "columns": columns, "values": values, "x": x, "rows": rows}


def spmv(starts: Any, columns: Any, values: Any, x: Any) -> Any:
    sums = np.concatenate([[0.0], np.cumsum(values * x[columns.astype(np.int64)])])
    return sums[starts[1:].astype(np.int64)] - sums[starts[:-1].astype(np.int64)]


def _spmv_torch(t: Any, starts: Any, columns: Any, values: Any, x: Any) -> Any:
    size = (starts.shape[0] - 1, x.shape[0])
    return t.sparse_csr_tensor(starts, columns, values, size=size) @ x


def _spmv_cusparse(cp: Any, starts: Any, columns: Any, values: Any, x: Any) -> Any:
    del cp
    from cupyx.scipy import sparse

    shape = (starts.shape[0] - 1, x.shape[0])
    matrix = sparse.csr_matrix((values, columns, starts), shape=shape)
    matrix.has_canonical_format = True  # CuPy sorts and sums its elements in each call otherwise
    return matrix @ x


def _tokens(rng: np.random.Generator, tokens: int, width: int, words: int) -> Values:
    ids = rng.integers(0, words, tokens, dtype=np.int32)
    return {"ids": ids, "table": uniform(rng, words, width), "tokens": tokens, "width": width}


def embedding(ids: Any, table: Any) -> Any:
    return table[ids.astype(np.int64)]


def _sentences(
    rng: np.random.Generator, batch: int, length: int, width: int, vocabulary: int
) -> Values:
    return {
        "ids": rng.integers(0, vocabulary, (batch, length), dtype=np.int32),
        "words": uniform(rng, vocabulary, width), "places": uniform(rng, length, width),
        "batch": batch, "length": length, "width": width,
    }  # fmt: skip


def positioned_embedding(ids: Any, words: Any, places: Any) -> Any:
    return words[ids.astype(np.int64)] + places


def _graph(rng: np.random.Generator, nodes: int, degree: int) -> Values:
    """Each node has ``degree`` neighbours, ascending, most of them near to it."""
    steps = rng.integers(1, 4, (nodes, degree), dtype=np.int64).cumsum(axis=1)
    columns = np.sort((np.arange(nodes)[:, None] + steps) % nodes, axis=1).astype(np.int32)
    starts = (degree * np.arange(nodes + 1)).astype(np.int32)
    sources = np.repeat(np.arange(nodes, dtype=np.int32), degree)
    found = {"starts": starts, "columns": columns.reshape(-1), "sources": sources}
    return {**found, "edges": nodes * degree}


def jaccard(starts: Any, columns: Any, sources: Any) -> Any:
    degree = int(starts[1] - starts[0])
    lists = columns.astype(np.int64).reshape(-1, degree)
    mine, others = lists[sources.astype(np.int64)], lists[columns.astype(np.int64)]
    common = sum((others == mine[:, k : k + 1]).any(axis=1).astype(int) for k in range(degree))
    return common / (2 * degree - common)


TASKS = (
    Entry(
        "spmv", "gathers", spmv, _sparse,
        full={"rows": 1 << 21, "mean": 16}, small={"rows": 2048, "mean": 16},
        checked={"rows": 515, "mean": 9},
        floor=lambda rows, mean: Floor(
            8 * rows * mean + 8 * rows, flops=2 * rows * mean,
            gathers=(Gather(rows * mean, 4, 4 * rows),),
        ),
        outputs={"y": "f4[rows]"},
        torch=_spmv_torch, libraries={"cuSPARSE": _spmv_cusparse},
    ),
    Entry(
        "embedding", "gathers", embedding, _tokens,
        full={"tokens": 65536, "width": 768, "words": 50257},
        small={"tokens": 512, "width": 128, "words": 1000},
        checked={"tokens": 132, "width": 68, "words": 50},
        floor=lambda tokens, width, words: Floor(
            4 * tokens * (width + 1), gathers=(Gather(tokens, 4 * width, 4 * words * width),)
        ),
        torch=lambda t, ids, table: t.nn.functional.embedding(ids, table),
        libraries={"CuPy": lambda _, ids, table: table[ids]},
    ),
    Entry(
        "jaccard", "gathers", jaccard, _graph,
        full={"nodes": 1 << 20, "degree": 16}, small={"nodes": 512, "degree": 8},
        checked={"nodes": 261, "degree": 6},
        # Neighbours are near, so that a list that was read once is in the L2.
        floor=lambda nodes, degree: Floor(12 * nodes * degree + 4 * nodes),
        source=_JACCARD, opened=True,
    ),
    Entry(
        "positioned_embedding", "gathers", positioned_embedding, _sentences,
        full={"batch": 64, "length": 1024, "width": 768, "vocabulary": 50257},
        small={"batch": 4, "length": 128, "width": 128, "vocabulary": 1000},
        checked={"batch": 3, "length": 44, "width": 68, "vocabulary": 50},
        floor=lambda batch, length, width, vocabulary: Floor(
            4 * (batch * length * (width + 1) + length * width), flops=batch * length * width,
            gathers=(Gather(batch * length, 4 * width, 4 * vocabulary * width),),
        ),
        torch=lambda t, ids, words, places: t.nn.functional.embedding(ids, words) + places,
        libraries={"CuPy": lambda _, ids, words, places: words[ids] + places}, source=_ENCODER,
    ),
)  # fmt: skip
