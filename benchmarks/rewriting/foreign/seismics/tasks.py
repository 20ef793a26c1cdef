"""Earthquakes and exploration: triggers, gathers, absorption."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent


def medium(rng: Generator, cells: int, nt: int) -> Values:
    return {
        "strain": uniform(rng, nt, cells),
        "decay": uniform(rng, cells, 12, low=0.6, high=0.95),
        "strength": uniform(rng, cells, 12, low=0, high=0.05),
        "cells": cells,
        "nt": nt,
    }


tasks = [
    Task(
        HERE / "sta_lta.cu",
        inputs=lambda rng, ns: {
            "trace": uniform(rng, ns),
            "ratio": np.zeros(ns, np.float32),
            "ns": ns,
        },
        sizes={"ns": 1 << 22},
        verify_sizes={"ns": 1500},
        inout=("ratio",),
    ),
    Task(
        HERE / "gain_control.cu",
        inputs=lambda rng, traces, samples: {
            "in": uniform(rng, traces, samples),
            "traces": traces,
            "samples": samples,
        },
        sizes={"traces": 1024, "samples": 4001},
        verify_sizes={"traces": 3, "samples": 333},
        outputs={"out": "f4[traces, samples]"},
    ),
    Task(
        HERE / "memory_variables.cu",
        inputs=medium,
        sizes={"cells": 2048, "nt": 400},
        verify_sizes={"cells": 35, "nt": 29},
        outputs={"stress": "f4[nt, cells]"},
    ),
    Task(
        HERE / "resample_gather.cu",
        inputs=lambda rng, traces, ns: {
            "gather": uniform(rng, traces, ns),
            "stretch": 0.93,
            "traces": traces,
            "ns": ns,
        },
        sizes={"traces": 64, "ns": 16384},
        verify_sizes={"traces": 5, "ns": 201},
        outputs={"out": "f4[traces, ns]"},
    ),
    Task(
        HERE / "balance.cu",
        inputs=lambda rng, ntr, ns: {"d": uniform(rng, ntr, ns), "ntr": ntr, "ns": ns},
        sizes={"ntr": 8192, "ns": 2000},
        verify_sizes={"ntr": 33, "ns": 121},
        outputs={"out": "f4[ntr, ns]"},
    ),
    Task(
        HERE / "corner_turn.cu",
        inputs=lambda rng, traces, samples: {
            "trace_order": uniform(rng, traces, samples, 2),
            "traces": traces,
            "samples": samples,
        },
        sizes={"traces": 4096, "samples": 2000},
        verify_sizes={"traces": 37, "samples": 50},
        outputs={"time_order": "f4[samples, traces, 2]"},
    ),
    Task(
        HERE / "coherence.cu",
        inputs=lambda rng, n: {"north": uniform(rng, n), "east": uniform(rng, n), "n": n},
        sizes={"n": 1 << 22},
        verify_sizes={"n": 1201},
        outputs={"coherent": "f4[n]"},
    ),
    Task(
        HERE / "triggers.cu",
        inputs=lambda rng, stations, samples: {
            "level": uniform(rng, stations, samples, low=0, high=5),
            "on": 4.9,
            "off": 0.1,
            "stations": stations,
            "samples": samples,
        },
        sizes={"stations": 2048, "samples": 4000},
        verify_sizes={"stations": 13, "samples": 300},
        outputs={"events": "i4[stations]", "longest": "i4[stations]"},
    ),
    Task(
        HERE / "smooth_velocity.cu",
        inputs=lambda rng, nx, nz, rx, rz: {
            "v": uniform(rng, nx, nz, low=1500, high=5500),
            "sx": rx / 2,
            "sz": rz / 2,
            "rx": rx,
            "rz": rz,
            "nx": nx,
            "nz": nz,
        },
        sizes={"nx": 1200, "nz": 800, "rx": 12, "rz": 6},
        verify_sizes={"nx": 37, "nz": 50, "rx": 4, "rz": 3},
        outputs={"smooth": "f4[nx, nz]"},
    ),
    Task(
        HERE / "detect_templates.cu",
        inputs=lambda rng, places, length, templates: {
            "trace": uniform(rng, places + length),
            "templ": uniform(rng, templates, length),
            "places": places,
            "length": length,
            "templates": templates,
        },
        sizes={"places": 65536, "length": 256, "templates": 64},
        verify_sizes={"places": 300, "length": 30, "templates": 5},
        outputs={"best": "f4[places]", "which": "i4[places]"},
    ),
    Task(
        HERE / "spread_gain.cu",
        inputs=lambda rng, traces, samples: {
            "gather": uniform(rng, samples, traces),
            "traces": traces,
            "samples": samples,
            "decay": 0.95,
        },
        sizes={"traces": 8192, "samples": 1500},
        verify_sizes={"traces": 75, "samples": 61},
        inout=("gather",),
    ),
    Task(
        HERE / "strongest.cu",
        inputs=lambda rng, traces, samples: {
            "trace": uniform(rng, samples, traces),
            "traces": traces,
            "samples": samples,
        },
        sizes={"traces": 256, "samples": 30000},
        verify_sizes={"traces": 75, "samples": 461},
        outputs={"peak": "f4[samples, traces]"},
    ),
    Task(
        HERE / "tau_p_tiles.cu",
        inputs=lambda rng, w, h: {"gather": uniform(rng, h, w), "w": w, "h": h},
        sizes={"w": 2048, "h": 2048},
        verify_sizes={"w": 24, "h": 16},
        outputs={"stack": "f4[h, w]"},
    ),
]
