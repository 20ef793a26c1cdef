"""Radio, sonar, electrodes: filters, beams, grids."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent
BAND = np.dtype([(name, "f4") for name in ("b0", "b1", "b2", "a1", "a2")], align=True)
CELL = np.dtype([("re", np.float32), ("im", np.float32)])


def pulses(rng: Generator, trials: int, length: int) -> Values:
    return {
        "series": rng.integers(0, 256, (trials, length), np.uint8),
        "snr": np.zeros((trials, length), np.float32),
        "mean": 127.5,
        "rms": 73.9,
        "trials": trials,
        "length": length,
    }


def array(rng: Generator, directions: int, elements: int, samples: int) -> Values:
    return {
        "weights": uniform(rng, directions, elements),
        "element": uniform(rng, elements, samples),
        "directions": directions,
        "elements": elements,
        "samples": samples,
    }


def visibilities(rng: Generator, nvis: int, side: int) -> Values:
    places = {name: uniform(rng, nvis, low=2, high=side - 4) for name in ("u", "v")}
    grid = uniform(rng, side, side, 2).view(CELL)[..., 0]
    return {"grid": grid, "vis": np.zeros(nvis, CELL), **places, "nvis": nvis, "side": side}


def neurons(rng: Generator, neurons: int, steps: int) -> Values:
    return {
        "spikes": uniform(rng, neurons, steps, 20, low=0),
        "leak": uniform(rng, 20, low=0.2, high=0.6),
        "weight": uniform(rng, neurons, 20, low=-0.1, high=0.1),
        "neurons": neurons,
        "steps": steps,
    }


tasks = [
    Task(
        HERE / "tone_bank.cu",
        inputs=lambda rng, channels, length: {
            "samples": uniform(rng, channels, length),
            "coeff": uniform(rng, 16, low=-1.8, high=1.8),
            "channels": channels,
            "length": length,
        },
        sizes={"channels": 1024, "length": 800},
        verify_sizes={"channels": 9, "length": 50},
        outputs={"power": "f4[channels, 16]"},
    ),
    Task(
        HERE / "boxcar.cu",
        inputs=pulses,
        sizes={"trials": 64, "length": 1 << 16},
        verify_sizes={"trials": 2, "length": 777},
        inout=("snr",),
    ),
    Task(
        HERE / "holes.cu",
        inputs=lambda rng, n: {
            "x": uniform(rng, n),
            "h": uniform(rng, 16),
            "n": n,
            "span": 121,
        },
        sizes={"n": 1 << 21},
        verify_sizes={"n": 900},
        outputs={"y": "f4[n]"},
    ),
    Task(
        HERE / "interleaved.cu",
        inputs=lambda rng, blocks, size: {
            "stream": uniform(rng, size, blocks),
            "antenna": 2,
            "blocks": blocks,
            "size": size,
        },
        sizes={"blocks": 16384, "size": 1024},
        verify_sizes={"blocks": 60, "size": 83},
        outputs={"power": "f4[blocks]"},
    ),
    Task(
        HERE / "spikes.cu",
        inputs=lambda rng, electrodes, length: {
            "voltage": uniform(rng, electrodes, length),
            "threshold": uniform(rng, electrodes, low=0.9, high=0.99),
            "refractory": 30,
            "electrodes": electrodes,
            "length": length,
        },
        sizes={"electrodes": 2048, "length": 4096},
        verify_sizes={"electrodes": 11, "length": 400},
        outputs={"count": "i4[electrodes]", "latest": "i4[electrodes]"},
    ),
    Task(
        HERE / "beams.cu",
        inputs=array,
        sizes={"directions": 128, "elements": 64, "samples": 8192},
        verify_sizes={"directions": 3, "elements": 9, "samples": 170},
        outputs={"beam": "f4[directions, samples]"},
    ),
    Task(
        HERE / "rotate_iq.cu",
        inputs=lambda rng, n: {
            "iq": uniform(rng, n, 2),
            "oscillator": uniform(rng, n, 2),
            "n": n,
        },
        sizes={"n": 1 << 23},
        verify_sizes={"n": 1701},
        outputs={"out": "f4[n, 2]"},
    ),
    Task(
        HERE / "degrid.cu",
        inputs=visibilities,
        sizes={"nvis": 1 << 18, "side": 512},
        verify_sizes={"nvis": 201, "side": 17},
    ),
    Task(
        HERE / "block_dct.cu",
        inputs=lambda rng, rows: {
            "in": uniform(rng, rows, 32),
            "basis": uniform(rng, 32, 32),
            "rows": rows,
        },
        sizes={"rows": 1 << 16},
        verify_sizes={"rows": 75},
        outputs={"out": "f4[32, rows]"},
    ),
    Task(
        HERE / "column_filter.cu",
        inputs=lambda rng, w, h: {"in": uniform(rng, h, w), "w": w, "h": h},
        sizes={"w": 4096, "h": 2048},
        verify_sizes={"w": 90, "h": 71},
        outputs={"out": "f4[w, h]"},
    ),
    Task(
        HERE / "leaky_traces.cu",
        inputs=neurons,
        sizes={"neurons": 1024, "steps": 256},
        verify_sizes={"neurons": 7, "steps": 31},
        outputs={"potential": "f4[neurons, steps]"},
    ),
    Task(
        HERE / "multiply_out.cu",
        inputs=lambda rng, n, m: {
            "a": uniform(rng, n),
            "b": uniform(rng, m),
            "n": n,
            "m": m,
        },
        sizes={"n": 20000, "m": 300},
        verify_sizes={"n": 203, "m": 31},
        outputs={"c": "f4[n + m - 1]"},
    ),
    Task(
        HERE / "spectral_angle.cu",
        inputs=lambda rng, pixels, bands, materials: {
            "cube": uniform(rng, bands, pixels, low=0),
            "library": uniform(rng, materials, bands, low=0),
            "pixels": pixels,
            "bands": bands,
            "materials": materials,
        },
        sizes={"pixels": 1 << 17, "bands": 120, "materials": 32},
        verify_sizes={"pixels": 150, "bands": 21, "materials": 5},
        outputs={"material": "i4[pixels]", "angle": "f4[pixels]"},
    ),
    Task(
        HERE / "bit_errors.cu",
        inputs=lambda rng, packets, bits: {
            "sent": rng.integers(0, 1 << 32, (packets, (bits + 31) // 32), np.uint32),
            "got": rng.integers(0, 1 << 32, (packets, (bits + 31) // 32), np.uint32),
            "packets": packets,
            "bits": bits,
        },
        sizes={"packets": 65536, "bits": 1000},
        verify_sizes={"packets": 150, "bits": 203},
        outputs={"errors": "i4[packets]"},
    ),
    Task(
        HERE / "soft_codebook.cu",
        inputs=lambda rng, frames, codes: {
            "frame": uniform(rng, frames, 40),
            "code": uniform(rng, codes, 40),
            "frames": frames,
            "codes": codes,
            "temperature": 2.0,
        },
        sizes={"frames": 32768, "codes": 512},
        verify_sizes={"frames": 70, "codes": 37},
        outputs={"rebuilt": "f4[frames, 40]", "energy": "f4[frames]"},
    ),
    Task(
        HERE / "biquad.cu",
        inputs=lambda rng, channels, samples: {
            "rec": uniform(rng, samples, channels),
            "band": np.array((0.2, 0.0, -0.2, -1.5, 0.6), BAND)[()],
            "channels": channels,
            "samples": samples,
        },
        sizes={"channels": 2048, "samples": 8192},
        verify_sizes={"channels": 67, "samples": 45},
        inout=("rec",),
    ),
    Task(
        HERE / "sine_tiles.cu",
        inputs=lambda rng, w, h: {"field": uniform(rng, h, w), "w": w, "h": h},
        sizes={"w": 2048, "h": 2048},
        verify_sizes={"w": 24, "h": 16},
        outputs={"modes": "f4[h, w]"},
    ),
    Task(
        HERE / "damped_tiles.cu",
        inputs=lambda rng, w, h: {"field": uniform(rng, h, w), "w": w, "h": h},
        sizes={"w": 2048, "h": 2048},
        verify_sizes={"w": 24, "h": 16},
        outputs={"modes": "f4[h, w]"},
    ),
]
