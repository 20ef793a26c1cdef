"""Robots: scans, maps, sensors, keypoints."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent
POINT = np.dtype([(name, np.float32) for name in ("x", "y", "z", "pad")])
POSE = np.dtype([("r", np.float32, 9), ("t", np.float32, 3)])


def bent(rng: Generator, n: int, side: int) -> Values:
    places = {name: uniform(rng, n, low=1, high=side - 3) for name in ("at_x", "at_y")}
    return {"coeff": uniform(rng, side, side), **places, "w": side, "h": side, "n": n}


def walks(rng: Generator, sensors: int, length: int) -> Values:
    reading = uniform(rng, sensors, length, low=-0.1, high=0.1).cumsum(axis=1)
    return {"reading": reading, "band": 1.5, "sensors": sensors, "length": length}


def obstacles(rng: Generator, rows: int, width: int) -> np.ndarray:
    """A bit a cell; one in sixty-four is taken."""
    return np.packbits(rng.random((rows, width)) < 1 / 64, axis=1, bitorder="little").view("u4")


tasks = [
    Task(
        HERE / "nearest_points.cu",
        inputs=lambda rng, scanned, mapped: {
            "scan": uniform(rng, scanned, 4).view(POINT)[:, 0],
            "map": uniform(rng, mapped, 4).view(POINT)[:, 0],
            "scanned": scanned,
            "mapped": mapped,
        },
        sizes={"scanned": 4096, "mapped": 4096},
        verify_sizes={"scanned": 33, "mapped": 130},
        outputs={"index": "i4[scanned, 4]", "squared": "f4[scanned, 4]"},
    ),
    Task(
        HERE / "soft_argmax.cu",
        inputs=lambda rng, maps, w, h: {
            "heat": uniform(rng, maps, h, w, low=-4, high=4),
            "maps": maps,
            "w": w,
            "h": h,
        },
        sizes={"maps": 2048, "w": 64, "h": 48},
        verify_sizes={"maps": 9, "w": 64, "h": 11},
        outputs={"px": "f4[maps]", "py": "f4[maps]"},
    ),
    Task(
        HERE / "clearance.cu",
        inputs=lambda rng, scans, beams: {
            "range": uniform(rng, scans, beams, low=0.2, high=30),
            "scans": scans,
            "beams": beams,
        },
        sizes={"scans": 2000, "beams": 1440},
        verify_sizes={"scans": 3, "beams": 301},
        outputs={"clear": "f4[scans, beams]"},
    ),
    Task(
        HERE / "smooth_torque.cu",
        inputs=lambda rng, readings: {
            "torque": uniform(rng, 7, readings),
            "smoothed": np.zeros((7, readings), np.float32),
            "readings": readings,
            "joints": 7,
        },
        sizes={"readings": 1 << 20},
        verify_sizes={"readings": 901},
        inout=("smoothed",),
    ),
    Task(
        HERE / "move_cloud.cu",
        inputs=lambda rng, points: {
            "from": uniform(rng, points, 4),
            "pose": uniform(rng, 12).view(POSE),
            "points": points,
        },
        sizes={"points": 1 << 23},
        verify_sizes={"points": 777},
        outputs={"to": "f4[points, 4]"},
    ),
    Task(
        HERE / "warp_map.cu",
        inputs=bent,
        sizes={"n": 1 << 20, "side": 1024},
        verify_sizes={"n": 500, "side": 23},
        outputs={"height": "f4[n]"},
    ),
    Task(
        HERE / "dead_band.cu",
        inputs=walks,
        sizes={"sensors": 4096, "length": 2000},
        verify_sizes={"sensors": 17, "length": 300},
        outputs={"sent": "i4[sensors]", "held": "f4[sensors]"},
    ),
    Task(
        HERE / "row_costs.cu",
        inputs=lambda rng, w, h: {"cost": uniform(rng, h, w, low=0), "w": w, "h": h},
        sizes={"w": 4096, "h": 8192},
        verify_sizes={"w": 75, "h": 41},
        outputs={"least": "f4[h]"},
    ),
    Task(
        HERE / "which_room.cu",
        inputs=lambda rng, robots, steps: {
            "reading": uniform(rng, steps, robots),
            "expected": uniform(rng, 32, steps),
            "robots": robots,
            "steps": steps,
        },
        sizes={"robots": 2048, "steps": 256},
        verify_sizes={"robots": 21, "steps": 37},
        outputs={"evidence": "f4[steps, robots]"},
    ),
    Task(
        HERE / "skinning.cu",
        inputs=lambda rng, vertices, bones, frames: {
            "distance": uniform(rng, vertices, bones, low=0, high=9),
            "lift": uniform(rng, bones, frames),
            "vertices": vertices,
            "bones": bones,
            "frames": frames,
        },
        sizes={"vertices": 4096, "bones": 48, "frames": 512},
        verify_sizes={"vertices": 5, "bones": 12, "frames": 64},
        outputs={"height": "f4[vertices, frames]"},
    ),
    Task(
        HERE / "crowded.cu",
        inputs=lambda rng, rows, cols, reach: {
            "occupied": rng.integers(0, 256, (rows, cols), np.uint8),
            "rows": rows,
            "cols": cols,
            "reach": reach,
        },
        sizes={"rows": 2000, "cols": 2000, "reach": 7},
        verify_sizes={"rows": 37, "cols": 45, "reach": 3},
        outputs={"share": "f4[rows, cols]"},
    ),
    Task(
        HERE / "policy.cu",
        inputs=lambda rng, robots, sensed, hidden: {
            "state": uniform(rng, robots, sensed),
            "w1": uniform(rng, hidden, sensed),
            "b1": uniform(rng, hidden),
            "w2": uniform(rng, 4, hidden, low=-0.1, high=0.1),
            "robots": robots,
            "sensed": sensed,
            "hidden": hidden,
        },
        sizes={"robots": 32768, "sensed": 48, "hidden": 128},
        verify_sizes={"robots": 150, "sensed": 13, "hidden": 21},
        outputs={"action": "f4[robots, 4]"},
    ),
    Task(
        HERE / "free_ahead.cu",
        inputs=lambda rng, robots, rows, width: {
            "map": obstacles(rng, rows, width),
            "row": rng.integers(0, rows, robots, np.int32),
            "col": rng.integers(0, width, robots, np.int32),
            "robots": robots,
            "width": width,
        },
        sizes={"robots": 65536, "rows": 4096, "width": 4096},
        verify_sizes={"robots": 150, "rows": 9, "width": 320},
        outputs={"ahead": "i4[robots]"},
    ),
    Task(
        HERE / "imitate.cu",
        inputs=lambda rng, states, demos: {
            "state": uniform(rng, states, 24),
            "shown": uniform(rng, demos, 24),
            "alpha": uniform(rng, demos, 16),
            "states": states,
            "demos": demos,
            "scale": 0.1,
        },
        sizes={"states": 16384, "demos": 2000},
        verify_sizes={"states": 70, "demos": 45},
        outputs={"action": "f4[states, 16]"},
    ),
    Task(
        HERE / "landmark_votes.cu",
        inputs=lambda rng, n, landmarks: {
            "seen": rng.integers(0, landmarks, n, np.int32),
            "sure": uniform(rng, n, low=0),
            "range": uniform(rng, n, low=0, high=9),
            "n": n,
            "landmarks": landmarks,
        },
        sizes={"n": 1 << 20, "landmarks": 80},
        verify_sizes={"n": 300, "landmarks": 13},
        outputs={"votes": "f4[landmarks]", "near": "f4[landmarks]"},
    ),
]
