"""Graphs: features, links, walks."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent


def edges(rng: Generator, nodes: int, degree: int) -> tuple[Values, int]:
    offsets = np.zeros(nodes + 1, np.int32)
    np.cumsum(rng.integers(degree // 2, degree, nodes), out=offsets[1:])
    return {"offsets": offsets}, int(offsets[-1])


def features(rng: Generator, nodes: int, degree: int, width: int) -> Values:
    made, count = edges(rng, nodes, degree)
    return {
        **made,
        "neighbour": rng.integers(0, nodes, count, np.int32),
        "weight": uniform(rng, count, low=0.1),
        "feature": uniform(rng, nodes, width),
        "nodes": nodes,
        "width": width,
    }


def links(rng: Generator, vertices: int, degree: int) -> Values:
    made, count = edges(rng, vertices, degree)
    return {
        "row_ptr": made["offsets"],
        "col": rng.integers(0, vertices, count, np.int32),
        "score": uniform(rng, count, low=0),
        "vertices": vertices,
    }


def sorted_rows(rng: Generator, nodes: int, degree: int) -> Values:
    made, count = edges(rng, nodes, degree)
    offsets = made["offsets"]
    near = np.repeat(np.arange(nodes), np.diff(offsets)) + rng.integers(0, 4 * degree, count)
    rows = np.split(near % nodes, offsets[1:-1])
    return {"row_ptr": offsets, "col": np.concatenate([np.sort(r) for r in rows]).astype(np.int32)}


def friends(rng: Generator, nodes: int, degree: int) -> Values:
    made = sorted_rows(rng, nodes, degree)
    owner = np.repeat(np.arange(nodes, dtype=np.int32), np.diff(made["row_ptr"]))
    return {**made, "from": owner, "edges": len(owner)}


def pairs(rng: Generator, nodes: int, degree: int, count: int) -> Values:
    one = rng.integers(0, nodes, count, np.int32)
    return {
        **sorted_rows(rng, nodes, degree),
        "rarity": uniform(rng, nodes, low=0.1),
        "one": one,
        "other": (one + rng.integers(0, 9, count)).astype(np.int32) % np.int32(nodes),
        "pairs": count,
    }


tasks = [
    Task(
        HERE / "shared_friends.cu",
        inputs=friends,
        sizes={"nodes": 16384, "degree": 16},
        verify_sizes={"nodes": 41, "degree": 9},
        outputs={"shared": "i4[edges]"},
    ),
    Task(
        HERE / "link_weight.cu",
        inputs=pairs,
        sizes={"nodes": 16384, "degree": 16, "count": 262144},
        verify_sizes={"nodes": 41, "degree": 9, "count": 77},
        outputs={"weight": "f4[pairs]"},
    ),
    Task(
        HERE / "mean_features.cu",
        inputs=features,
        sizes={"nodes": 16384, "degree": 32, "width": 64},
        verify_sizes={"nodes": 31, "degree": 9, "width": 41},
        outputs={"out": "f4[nodes, width]"},
    ),
    Task(
        HERE / "likeliest_link.cu",
        inputs=links,
        sizes={"vertices": 4096, "degree": 800},
        verify_sizes={"vertices": 41, "degree": 60},
        outputs={"partner": "i4[vertices]", "margin": "f4[vertices]"},
    ),
    Task(
        HERE / "normalised_adjacency.cu",
        inputs=lambda rng, n: {"affinity": uniform(rng, n, n, low=0), "n": n},
        sizes={"n": 4096},
        verify_sizes={"n": 51},
        outputs={"walk": "f4[n, n]"},
    ),
]
