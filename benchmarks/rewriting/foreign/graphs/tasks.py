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


tasks = [
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
