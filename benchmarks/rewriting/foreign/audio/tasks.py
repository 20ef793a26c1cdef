"""Sound: synthesis, limiters, sample rates, echoes."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent
FRAME = np.dtype([("left", np.float32), ("right", np.float32)])


def voices(rng: Generator, voices: int, samples: int) -> Values:
    bank = (voices, 32)
    return {
        "strike": uniform(rng, voices, samples),
        "damping": uniform(rng, *bank, low=0.001, high=0.2),
        "pitch": uniform(rng, *bank, low=0.05, high=2),
        "gain": uniform(rng, *bank),
        "voices": voices,
        "samples": samples,
    }


def lines(rng: Generator, lines: int, length: int) -> Values:
    return {
        "far_end": uniform(rng, lines, length + 31),
        "microphone": uniform(rng, lines, length),
        "rate": 0.01,
        "lines": lines,
        "length": length,
    }


tasks = [
    Task(
        HERE / "mode_bank.cu",
        inputs=voices,
        sizes={"voices": 256, "samples": 512},
        verify_sizes={"voices": 5, "samples": 23},
        outputs={"out": "f4[voices, samples]"},
    ),
    Task(
        HERE / "envelope.cu",
        inputs=lambda rng, length: {"signal": uniform(rng, length), "length": length},
        sizes={"length": 1 << 23},
        verify_sizes={"length": 3001},
        outputs={"envelope": "f4[length]"},
    ),
    Task(
        HERE / "upsample.cu",
        inputs=lambda rng, frames: {
            "in": uniform(rng, frames),
            "taps": uniform(rng, 96),
            "frames": frames,
            "ntaps": 96,
        },
        sizes={"frames": 1 << 21},
        verify_sizes={"frames": 701},
        outputs={"out": "f4[3 * frames]"},
    ),
    Task(
        HERE / "mid_side.cu",
        inputs=lambda rng, frames: {
            "input": uniform(rng, frames, 2).view(FRAME)[:, 0],
            "output": np.zeros(frames, FRAME),
            "width": 1.4,
            "frames": frames,
        },
        sizes={"frames": 1 << 24},
        verify_sizes={"frames": 2003},
    ),
    Task(
        HERE / "vary_speed.cu",
        inputs=lambda rng, made: {
            "tape": uniform(rng, 8, made),
            "speed": 0.97,
            "channels": 8,
            "length": made,
            "made": made,
        },
        sizes={"made": 1 << 20},
        verify_sizes={"made": 777},
        outputs={"out": "f4[channels, made]"},
    ),
    Task(
        HERE / "peak_normalise.cu",
        inputs=lambda rng, clips, samples: {
            "clip": uniform(rng, clips, samples),
            "target": 0.9,
            "clips": clips,
            "samples": samples,
        },
        sizes={"clips": 8192, "samples": 2048},
        verify_sizes={"clips": 21, "samples": 130},
        outputs={"out": "f4[clips, samples]"},
    ),
    Task(
        HERE / "adaptive_echo.cu",
        inputs=lines,
        sizes={"lines": 512, "length": 1024},
        verify_sizes={"lines": 7, "length": 45},
        outputs={"clean": "f4[lines, length]"},
    ),
    Task(
        HERE / "lag_sums.cu",
        inputs=lambda rng, n, lags: {"x": uniform(rng, n), "n": n, "lags": lags},
        sizes={"n": 100000, "lags": 1024},
        verify_sizes={"n": 300, "lags": 50},
        outputs={"r": "f4[lags]"},
    ),
    Task(
        HERE / "smooth_spectrogram.cu",
        inputs=lambda rng, frames, bands, reach: {
            "power": uniform(rng, frames, bands, low=0, high=9),
            "frames": frames,
            "bands": bands,
            "reach": reach,
        },
        sizes={"frames": 4096, "bands": 513, "reach": 5},
        verify_sizes={"frames": 37, "bands": 70, "reach": 3},
        outputs={"smooth": "f4[frames, bands]"},
    ),
]
