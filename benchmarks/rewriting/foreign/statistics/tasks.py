"""Estimates, tests and samples."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent


def observations(rng: Generator, places: int, observed: int, responses: int) -> Values:
    return {
        "place": uniform(rng, places, 8),
        "seen": uniform(rng, observed, 8),
        "response": uniform(rng, observed, responses, low=0.5, high=2),
        "width": 3.0,
        "places": places,
        "observed": observed,
        "responses": responses,
    }


def groups(rng: Generator, measured: int, n1: int, n2: int) -> Values:
    return {
        "treated": uniform(rng, measured, n1, low=4, high=6),
        "control": uniform(rng, measured, n2, low=2, high=4),
        "measured": measured,
        "n1": n1,
        "n2": n2,
    }


tasks = [
    Task(
        HERE / "kernel_regression.cu",
        inputs=observations,
        sizes={"places": 2048, "observed": 512, "responses": 64},
        verify_sizes={"places": 13, "observed": 25, "responses": 35},
        outputs={"fitted": "f4[places, responses]"},
    ),
    Task(
        HERE / "soft_choice.cu",
        inputs=lambda rng, households, goods: {
            "utility": uniform(rng, goods, households, low=-5, high=5),
            "price": uniform(rng, goods, low=1, high=9),
            "households": households,
            "goods": goods,
        },
        sizes={"households": 65536, "goods": 200},
        verify_sizes={"households": 70, "goods": 43},
        outputs={"inclusive": "f4[households]", "paid": "f4[households]"},
    ),
    Task(
        HERE / "reservoir.cu",
        inputs=lambda rng, streams, length: {
            "stream": uniform(rng, streams, length),
            "u": uniform(rng, streams, length, low=0),
            "streams": streams,
            "length": length,
        },
        sizes={"streams": 2048, "length": 2048},
        verify_sizes={"streams": 11, "length": 99},
        outputs={"kept": "f4[streams, 8]"},
    ),
    Task(
        HERE / "deviance.cu",
        inputs=lambda rng, n: {
            "count": rng.integers(0, 9, n, np.int32),
            "eta": uniform(rng, n),
            "n": n,
        },
        sizes={"n": 1 << 24},
        verify_sizes={"n": 1777},
        outputs={"residual": "f4[n]"},
        atol=1e-3,  # a root of a difference near zero
    ),
    Task(
        HERE / "two_groups.cu",
        inputs=groups,
        sizes={"measured": 20000, "n1": 500, "n2": 400},
        verify_sizes={"measured": 33, "n1": 45, "n2": 31},
        outputs={"t": "f4[measured]"},
    ),
    Task(
        HERE / "robust_scale.cu",
        inputs=lambda rng, samples, variables: {
            "data": uniform(rng, samples, variables, low=7, high=9),
            "samples": samples,
            "variables": variables,
        },
        sizes={"samples": 5000, "variables": 2000},
        verify_sizes={"samples": 77, "variables": 45},
        outputs={"centre": "f4[variables]", "scale": "f4[variables]"},
        atol=1e-4,  # of equal values the spread is what their mean is rounded by
    ),
    Task(
        HERE / "online_logistic.cu",
        inputs=lambda rng, streams, examples: {
            "x": uniform(rng, streams, examples, 24),
            "label": rng.integers(0, 2, (streams, examples), np.uint8),
            "rate": 0.05,
            "streams": streams,
            "examples": examples,
        },
        sizes={"streams": 1024, "examples": 256},
        verify_sizes={"streams": 7, "examples": 35},
        outputs={"said": "f4[streams, examples]"},
    ),
    Task(
        HERE / "local_density.cu",
        inputs=lambda rng, n, across: {
            "bins": uniform(rng, across, across, low=0),
            "x": uniform(rng, n, low=6, high=across - 7),
            "y": uniform(rng, n, low=6, high=across - 7),
            "n": n,
            "across": across,
        },
        sizes={"n": 1 << 18, "across": 512},
        verify_sizes={"n": 203, "across": 29},
        outputs={"density": "f4[n]"},
    ),
    Task(
        HERE / "loudest_cell.cu",
        inputs=lambda rng, records, length: {
            "samples": uniform(rng, records, 256, length),
            "length": length,
        },
        sizes={"records": 2048, "length": 32},
        verify_sizes={"records": 3, "length": 7},
        outputs={"where": "i4[records]", "energy": "f4[records]"},
    ),
    Task(
        HERE / "binned_density.cu",
        inputs=lambda rng, bins, hx, hy: {
            "counts": rng.integers(0, 9, (bins, bins), np.int32),
            "hx": hx,
            "hy": hy,
            "n": 4.0 * bins * bins,
            "bins": bins,
        },
        sizes={"bins": 1024, "hx": 12, "hy": 9},
        verify_sizes={"bins": 43, "hx": 5, "hy": 4},
        outputs={"density": "f4[bins, bins]"},
    ),
    Task(
        HERE / "mixture.cu",
        inputs=lambda rng, n, k, d: {
            "x": uniform(rng, n, d),
            "mean": uniform(rng, k, d),
            "precision": uniform(rng, k, d, low=0.5, high=2),
            "log_weight": uniform(rng, k, low=-4, high=-1),
            "n": n,
            "k": k,
            "d": d,
        },
        sizes={"n": 65536, "k": 64, "d": 40},
        verify_sizes={"n": 150, "k": 7, "d": 19},
        outputs={"loglik": "f4[n]"},
    ),
    Task(
        HERE / "svm_decision.cu",
        inputs=lambda rng, samples, support, features: {
            "samples_x": uniform(rng, samples, features),
            "vectors": uniform(rng, support, features),
            "alpha": uniform(rng, support, low=-1, high=1),
            "gamma": 0.05,
            "bias": 0.3,
            "samples": samples,
            "support": support,
            "features": features,
        },
        sizes={"samples": 16384, "support": 512, "features": 100},
        verify_sizes={"samples": 270, "support": 37, "features": 21},
        outputs={"decision": "f4[samples]"},
    ),
    Task(
        HERE / "mean_shift.cu",
        inputs=lambda rng, modes, samples: {
            "mode": uniform(rng, modes, 16),
            "sample": uniform(rng, samples, 16),
            "bandwidth": 1.2,
            "modes": modes,
            "samples": samples,
        },
        sizes={"modes": 16384, "samples": 4096},
        verify_sizes={"modes": 70, "samples": 43},
        outputs={"moved": "f4[modes, 16]"},
    ),
    Task(
        HERE / "class_spread.cu",
        inputs=lambda rng, n, classes: {
            "label": rng.integers(0, classes, n, np.int32),
            "x": uniform(rng, n),
            "centre": uniform(rng, classes),
            "n": n,
            "classes": classes,
        },
        sizes={"n": 1 << 20, "classes": 32},
        verify_sizes={"n": 300, "classes": 13},
        outputs={"spread": "f4[classes]"},
    ),
]
