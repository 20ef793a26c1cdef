"""Particles: masses, vertices, meshes, ensembles."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent


def muons(rng: Generator, pairs: int) -> Values:
    made: Values = {"pairs": pairs}
    for i in (1, 2):
        made[f"pt{i}"] = uniform(rng, pairs, low=5, high=60)
        made[f"eta{i}"] = uniform(rng, pairs, low=-2.4, high=2.4)
        made[f"phi{i}"] = uniform(rng, pairs, low=-3.1, high=3.1)
    return made


def mesh(rng: Generator, particles: int, n: int) -> Values:
    return {
        "mesh": uniform(rng, n, n, n),
        "pos": uniform(rng, particles, 4, low=0, high=n - 1),
        "particles": particles,
        "n": n,
    }


def tracks(rng: Generator, events: int, tracks: int) -> Values:
    along = np.sort(uniform(rng, events, tracks, low=-100, high=100), axis=1)
    return {"z": along, "gap": 25.0, "events": events, "tracks": tracks}


tasks = [
    Task(
        HERE / "invariant_mass.cu",
        inputs=muons,
        sizes={"pairs": 1 << 24},
        verify_sizes={"pairs": 1501},
        outputs={"mass": "f4[pairs]"},
        rtol=1e-4,  # cosh - cos cancels for muons that lie close together
    ),
    Task(
        HERE / "boltzmann.cu",
        inputs=lambda rng, replicas, states: {
            "energy": uniform(rng, replicas, states, low=1, high=9),
            "beta": uniform(rng, replicas, low=0.5, high=2),
            "replicas": replicas,
            "states": states,
        },
        sizes={"replicas": 4096, "states": 2048},
        verify_sizes={"replicas": 13, "states": 111},
        outputs={"free_energy": "f4[replicas]", "mean_energy": "f4[replicas]"},
    ),
    Task(
        HERE / "gather_field.cu",
        inputs=mesh,
        sizes={"particles": 1 << 18, "n": 64},
        verify_sizes={"particles": 301, "n": 64},
        outputs={"at": "f4[particles]"},
    ),
    Task(
        HERE / "vertices.cu",
        inputs=tracks,
        sizes={"events": 8192, "tracks": 400},
        verify_sizes={"events": 31, "tracks": 70},
        outputs={"found": "i4[events]", "start": "f4[events]"},
    ),
    Task(
        HERE / "hit_counters.cu",
        inputs=lambda rng, events, hits: {
            "layer": rng.integers(0, 32, (hits, events), np.uint8),
            "events": events,
            "hits": hits,
        },
        sizes={"events": 32768, "hits": 200},
        verify_sizes={"events": 90, "hits": 31},
        outputs={"counts": "i4[32, events]"},
    ),
    Task(
        HERE / "band_product.cu",
        inputs=lambda rng, n, band: {
            "diagonals": uniform(rng, n, 2 * band + 1),
            "x": uniform(rng, n),
            "n": n,
            "band": band,
        },
        sizes={"n": 30000, "band": 16},
        verify_sizes={"n": 203, "band": 7},
        outputs={"y": "f4[n]"},
    ),
    Task(
        HERE / "attract.cu",
        inputs=lambda rng, n: {"body": uniform(rng, n, 4, low=0), "n": n, "softening": 0.01},
        sizes={"n": 8192},
        verify_sizes={"n": 203},
        outputs={"pull": "f4[n, 3]"},
    ),
    Task(
        HERE / "spin_sweep.cu",
        inputs=lambda rng, half: {
            "spin": (2 * rng.integers(0, 2, (2 * half, 2 * half)) - 1).astype("i1"),
            "colour": 0,
            "seed": 7,
            "often": 1 << 28,
            "side": 2 * half,
        },
        sizes={"half": 512},
        verify_sizes={"half": 6},
        inout=("spin",),
    ),
    Task(
        HERE / "coarse_grain.cu",
        inputs=lambda rng, n, b: {"rho": rng.random((n, n)), "n": n, "b": b},
        sizes={"n": 1024, "b": 7},
        verify_sizes={"n": 37, "b": 3},
        outputs={"coarse": "f8[n, n]"},
    ),
    Task(
        HERE / "replica_overlap.cu",
        inputs=lambda rng, replicas, sites: {
            "spins": rng.integers(0, 1 << 64, (replicas, sites // 64), np.uint64),
            "replicas": replicas,
            "sites": sites,
        },
        sizes={"replicas": 512, "sites": 4096},
        verify_sizes={"replicas": 37, "sites": 192},
        outputs={"q": "f4[replicas, replicas]"},
    ),
    Task(
        HERE / "recall.cu",
        inputs=lambda rng, states, patterns: {
            "state": uniform(rng, states, 64),
            "pattern": rng.choice(np.array([-1, 1], np.float32), (patterns, 64)),
            "beta": 0.5,
            "states": states,
            "patterns": patterns,
        },
        sizes={"states": 8192, "patterns": 1000},
        verify_sizes={"states": 70, "patterns": 41},
        outputs={"next": "f4[states, 64]"},
    ),
    Task(
        HERE / "line_solver.cu",
        inputs=lambda rng, lines, cells: {
            "rhs": uniform(rng, cells, lines),
            "lower": uniform(rng, cells) * np.float32(0.25),
            "ratio": uniform(rng, cells) * np.float32(0.25),
            "pivot": uniform(rng, cells, low=0.5, high=1),
            "lines": lines,
            "cells": cells,
        },
        sizes={"lines": 16384, "cells": 512},
        verify_sizes={"lines": 131, "cells": 37},
        inout=("rhs",),
    ),
    Task(
        HERE / "travelled.cu",
        inputs=lambda rng, walkers, count: {
            "steps": uniform(rng, walkers, count, 2),
            "walkers": walkers,
            "count": count,
        },
        sizes={"walkers": 24, "count": 100000},
        verify_sizes={"walkers": 5, "count": 611},
        outputs={"way": "f4[walkers, count]"},
    ),
    Task(
        HERE / "mass_by_cell.cu",
        inputs=lambda rng, particles, cells: {
            "cell": rng.integers(0, cells, particles, np.int32),
            "mass": uniform(rng, particles),
            "particles": particles,
            "cells": cells,
        },
        sizes={"particles": 1 << 20, "cells": 256},
        verify_sizes={"particles": 300, "cells": 13},
        outputs={"in_cell": "f8[cells]"},
    ),
    Task(
        HERE / "angular_modes.cu",
        inputs=lambda rng, w, h: {"patch": uniform(rng, h, w), "w": w, "h": h},
        sizes={"w": 2048, "h": 2048},
        verify_sizes={"w": 24, "h": 16},
        outputs={"mode": "f4[h, w]"},
    ),
]
