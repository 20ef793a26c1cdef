"""Sparse matrices, graphs, clustering."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from optiml_magic import Task

HERE = Path(__file__).parent
f4, i4 = np.float32, np.int32


def rows_of(rng, rows, cols, most):
    """Row offsets and column indices of a sparse pattern."""
    picks = [
        np.sort(rng.choice(cols, rng.integers(1, most + 1), replace=False)) for _ in range(rows)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(p) for p in picks])]).astype(i4)
    return offsets, np.concatenate(picks).astype(i4)


def csr(rng, rows=200, cols=150, most=12):
    ptr, indices = rows_of(rng, rows, cols, most)
    data, x = (rng.uniform(0.5, 1.5, n).astype(f4) for n in (indices.size, cols))
    return {"num_rows": rows, "ptr": ptr, "indices": indices, "data": data, "x": x}


def csr_product(num_rows, ptr, indices, data, x):
    return np.array([data[a:b] @ x[indices[a:b]] for a, b in pairwise(ptr)])


def ell(rng, rows=130, entries=6):
    cols = rng.integers(0, rows, (entries, rows), i4)
    lengths = rng.integers(0, entries + 1, rows)
    cols[np.arange(entries)[:, None] >= lengths] = -1
    return {
        "num_rows": rows,
        "max_entries": entries,
        "cols": cols,
        "values": rng.normal(size=(entries, rows)),
        "x": rng.normal(size=rows),
    }


def coo(rng, rows=50, nnz=700):
    return {
        "row": rng.integers(0, rows, nnz, i4),
        "col": rng.integers(0, rows, nnz, i4),
        "val": rng.uniform(0.5, 1.5, nnz).astype(f4),
        "x": rng.uniform(0.5, 1.5, rows).astype(f4),
        "nnz": nnz,
    }


def coo_product(row, col, val, x):
    return np.bincount(row, val * x[col], minlength=x.size)


def levels(edges, dest, source, num_vertices):
    level = np.full(num_vertices, 2**31 - 1, i4)
    level[source] = 0
    for depth in range(3):
        for v in np.flatnonzero(level == depth):
            near = dest[edges[v] : edges[v + 1]]
            level[near] = np.minimum(level[near], depth + 1)
    return level


def graph(rng, n=300):
    edges, dest = rows_of(rng, n, n, 4)
    return {"edges": edges, "dest": dest, "source": 7, "num_vertices": n}


def frontier(rng, n=200):
    offsets, neighbours = rows_of(rng, n, n, 5)
    distance = np.full(n, -1, i4)
    first = rng.choice(n, 30, replace=False).astype(i4)
    distance[first] = 2
    return {
        "offsets": offsets,
        "neighbours": neighbours,
        "frontier": first,
        "frontier_size": 30,
        "distance": distance,
        "queued": np.zeros(n, i4),
        "depth": 2,
    }


def expanded(offsets, neighbours, frontier, distance):
    found = np.zeros(distance.size, i4)
    for v in frontier:
        near = neighbours[offsets[v] : offsets[v + 1]]
        found[near[distance[near] == -1]] = 1
    distance[found == 1] = 3
    return {"distance": distance, "next_size": found.sum(keepdims=True, dtype=i4), "queued": found}


def components(from_, to, n):
    label = np.arange(n, dtype=i4)
    for _ in range(n):
        before = label.copy()
        low = np.minimum(label[from_], label[to])
        np.minimum.at(label, from_, low)
        np.minimum.at(label, to, low)
        if np.array_equal(before, label):
            break
    return label


def propagated(offsets, neighbours, labels):
    ends = pairwise(offsets)
    out = [min(labels[v], *labels[neighbours[a:b]]) for v, (a, b) in enumerate(ends)]
    return np.array(out, i4), np.array([int(np.any(out != labels))], i4)


def neighbourhoods(rng, n=260):
    offsets, neighbours = rows_of(rng, n, n, 3)
    return {
        "offsets": offsets,
        "neighbours": neighbours,
        "labels": rng.permutation(n).astype(i4),
        "n": n,
    }


def assigned(points, centres):
    cluster = ((points[:, None] - centres) ** 2).sum(2).argmin(1).astype(i4)
    sums = np.zeros(centres.shape)
    np.add.at(sums, cluster, points)
    return cluster, sums, np.bincount(cluster, minlength=len(centres)).astype(i4)


def web(rng, n=120):
    offsets, sources = rows_of(rng, n, n, 6)
    return {
        "offsets": offsets,
        "sources": sources,
        "out_degree": np.maximum(np.bincount(sources, minlength=n), 1).astype(i4),
        "rank": np.full(n, 1 / n, f4),
        "n": n,
    }


def pagerank(offsets, sources, out_degree, rank, n):
    for _ in range(10):
        flow = rank[sources] / out_degree[sources]
        rank = 0.15 / n + 0.85 * np.add.reduceat(flow, offsets[:-1])
    return rank


tasks = [
    Task(HERE / "csr_scalar.cu", reference=csr_product, inputs=csr),
    Task(HERE / "csr_vector.cu", reference=csr_product, inputs=lambda rng: csr(rng, 50, 200, 90)),
    Task(
        HERE / "ell.cu",
        reference=lambda cols, values, x: (np.where(cols < 0, 0, values) * x[cols]).sum(0),
        inputs=ell,
    ),
    Task(HERE / "coo_atomic.cu", reference=coo_product, inputs=coo),
    Task(HERE / "bfs_level.cu", reference=levels, inputs=graph),
    Task(HERE / "bfs_frontier.cu", reference=expanded, inputs=frontier, inout=("queued",)),
    Task(
        HERE / "union_find.cu",
        reference=components,
        inputs=lambda rng: {
            "from": rng.integers(0, 300, 260, i4),
            "to": rng.integers(0, 300, 260, i4),
            "n": 300,
            "edges": 260,
        },
    ),
    Task(HERE / "label_step.cu", reference=propagated, inputs=neighbourhoods),
    Task(
        HERE / "kmeans_assign.cu",
        reference=assigned,
        inputs=lambda rng: {
            "points": rng.uniform(0.5, 1.5, (500, 3)).astype(f4),
            "centres": rng.uniform(0.5, 1.5, (7, 3)).astype(f4),
            "n": 500,
            "k": 7,
        },
    ),
    Task(HERE / "pagerank.cu", reference=pagerank, inputs=web),
]
