"""Pictures: filters, mosaics, enlargements, layouts."""

from pathlib import Path

import numpy as np
from numpy.random import Generator

from optiml_magic import Task
from optiml_magic.bench.entry import Values, uniform

HERE = Path(__file__).parent


def picture(rng: Generator, w: int, h: int) -> Values:
    return {"w": w, "h": h, "made": uniform(rng, h, w, low=0)}


def named(name: str, rng: Generator, w: int, h: int) -> Values:
    made = picture(rng, w, h)
    return {name: made.pop("made"), **made}


def gradient(rng: Generator, w: int, h: int) -> Values:
    ow, oh = (w + 1) // 2, (h + 1) // 2
    return {"weight": uniform(rng, 5, 5), "ow": ow, "oh": oh, "w": w, "h": h,
            "grad": uniform(rng, oh, ow)}  # fmt: skip


def pixels(rng: Generator, pixels: int) -> Values:
    mean = np.array([0.485, 0.456, 0.406], np.float32)
    return {"rgba": rng.integers(0, 256, (pixels, 4), np.uint8), "mean": mean, "pixels": pixels}


def small(rng: Generator, w: int, h: int) -> Values:
    return {**named("in", rng, w // 2, h // 2), "scale": 0.49, "ow": w, "oh": h}


tasks = [
    Task(
        HERE / "box_clamped.cu",
        inputs=lambda rng, width, height: {
            "src": rng.integers(0, 4096, (height, width), np.uint16),
            "width": width,
            "height": height,
        },
        sizes={"width": 2048, "height": 1024},
        verify_sizes={"width": 75, "height": 41},
        outputs={"dst": "u2[height, width]"},
    ),
    Task(
        HERE / "dilate.cu",
        inputs=lambda rng, w, h: named("depth", rng, w, h),
        sizes={"w": 1920, "h": 1080},
        verify_sizes={"w": 70, "h": 43},
        outputs={"out": "f4[h, w]"},
    ),
    Task(
        HERE / "flat_field.cu",
        inputs=lambda rng, width, lines: {
            "line": rng.integers(0, 256, (lines, width), np.uint8),
            "width": width,
            "lines": lines,
        },
        sizes={"width": 4096, "lines": 1024},
        verify_sizes={"width": 301, "lines": 7},
        outputs={"background": "u1[lines, width]"},
    ),
    Task(
        HERE / "green_plane.cu",
        inputs=lambda rng, w, h: {**named("raw", rng, w, h), "green": np.zeros((h, w), "f4")},
        sizes={"w": 2048, "h": 1536},
        verify_sizes={"w": 67, "h": 45},
        inout=("green",),
    ),
    Task(
        HERE / "conv_backward.cu",
        inputs=gradient,
        sizes={"w": 2048, "h": 2048},
        verify_sizes={"w": 70, "h": 41},
        outputs={"into": "f4[h, w]"},
    ),
    Task(
        HERE / "to_planes.cu",
        inputs=pixels,
        sizes={"pixels": 1 << 24},
        verify_sizes={"pixels": 1999},
        outputs={"planes": "f4[3, pixels]"},
    ),
    Task(
        HERE / "cubic_zoom.cu",
        inputs=small,
        sizes={"w": 2048, "h": 1024},
        verify_sizes={"w": 70, "h": 46},
        outputs={"out": "f4[oh, ow]"},
    ),
    Task(
        HERE / "template_match.cu",
        inputs=lambda rng, w, h, side: {
            **named("picture", rng, w, h),
            "pattern": uniform(rng, side, side),
            "match": np.zeros((h, w), "f4"),
            "side": side,
        },
        sizes={"w": 512, "h": 512, "side": 16},
        verify_sizes={"w": 50, "h": 37, "side": 7},
        inout=("match",),
    ),
    Task(
        HERE / "patch_contrast.cu",
        inputs=lambda rng, count, pixels: {
            "data": uniform(rng, count, pixels, low=0),
            "count": count,
            "pixels": pixels,
        },
        sizes={"count": 16384, "pixels": 1024},
        verify_sizes={"count": 37, "pixels": 81},
        outputs={"mean": "f4[count]", "contrast": "f4[count]"},
    ),
    Task(
        HERE / "channels_first.cu",
        inputs=lambda rng, pixels: {"nhwc": uniform(rng, pixels, 32), "pixels": pixels},
        sizes={"pixels": 1 << 19},
        verify_sizes={"pixels": 301},
        outputs={"nchw": "f4[32, pixels]"},
    ),
    Task(
        HERE / "local_contrast.cu",
        inputs=lambda rng, w, h: {
            "grey": rng.integers(0, 256, (h, w), np.uint8),
            "w": w,
            "h": h,
        },
        sizes={"w": 3840, "h": 2160},
        verify_sizes={"w": 77, "h": 43},
        outputs={"contrast": "u1[h, w]"},
    ),
    Task(
        HERE / "steady_frames.cu",
        inputs=lambda rng, w, h, frames: {
            "film": uniform(rng, frames, h, w, low=0),
            "cosine": 0.9998,
            "sine": 0.02,
            "w": w,
            "h": h,
            "frames": frames,
        },
        sizes={"w": 1280, "h": 720, "frames": 16},
        verify_sizes={"w": 37, "h": 21, "frames": 3},
        outputs={"steady": "f4[frames, h, w]"},
    ),
    Task(
        HERE / "quarter_turn.cu",
        inputs=lambda rng, w, h: {
            "in": rng.integers(0, 1 << 32, (h, w), np.uint32),
            "w": w,
            "h": h,
        },
        sizes={"w": 4096, "h": 3072},
        verify_sizes={"w": 75, "h": 41},
        outputs={"out": "u4[w, h]"},
    ),
    Task(
        HERE / "sharpen.cu",
        inputs=lambda rng, w, h, radius: {
            "src": rng.integers(0, 256, (h, w), np.uint8),
            "taps": np.exp(-0.5 * np.linspace(-2.5, 2.5, 2 * radius + 1) ** 2).astype("f4"),
            "amount": 0.8,
            "radius": radius,
            "w": w,
            "h": h,
        },
        sizes={"w": 2048, "h": 1536, "radius": 6},
        verify_sizes={"w": 70, "h": 43, "radius": 3},
        outputs={"dst": "u1[h, w]"},
        atol=1,
    ),
    Task(
        HERE / "free_form.cu",
        inputs=lambda rng, w, h, step: {
            "lattice": uniform(rng, (h - 1) // step + 4, lw := (w - 1) // step + 4, 2),
            "step": step,
            "lw": lw,
            "w": w,
            "h": h,
        },
        sizes={"w": 2048, "h": 2048, "step": 8},
        verify_sizes={"w": 70, "h": 43, "step": 5},
        outputs={"field": "f4[h, w, 2]"},
    ),
    Task(
        HERE / "half_size.cu",
        inputs=lambda rng, w, h: named("in", rng, w, h),
        sizes={"w": 4096, "h": 3072},
        verify_sizes={"w": 150, "h": 47},
        outputs={"out": "f4[h / 2, w / 2]"},
    ),
    Task(
        HERE / "oriented.cu",
        inputs=lambda rng, w, h: {
            **named("image", rng, w, h),
            "c": 0.8,
            "s": 0.6,
            "wavelength": 5.0,
            "sigma": 2.5,
        },
        sizes={"w": 1024, "h": 1024},
        verify_sizes={"w": 70, "h": 43},
        outputs={"response": "f4[h, w]"},
    ),
    Task(
        HERE / "binary_match.cu",
        inputs=lambda rng, n, m: {
            "left": rng.integers(0, 1 << 32, (n, 8), np.uint32),
            "right": rng.integers(0, 1 << 32, (m, 8), np.uint32),
            "n": n,
            "m": m,
            "most": 110,
        },
        sizes={"n": 2048, "m": 512},
        verify_sizes={"n": 70, "m": 37},
        outputs={"match": "i4[n]"},
    ),
    Task(
        HERE / "binomial.cu",
        inputs=lambda rng, width, height: {
            "in": rng.integers(0, 256, (height, width), np.uint8),
            "width": width,
            "height": height,
        },
        sizes={"width": 4096, "height": 2160},
        verify_sizes={"width": 70, "height": 43},
        outputs={"out": "u1[height, width]"},
    ),
    Task(
        HERE / "window_attention.cu",
        inputs=lambda rng, windows: {
            **{name: uniform(rng, windows, 64, 32) for name in "qkv"},
            "bias": uniform(rng, 64, 64),
            "windows": windows,
        },
        sizes={"windows": 4096},
        verify_sizes={"windows": 3},
        outputs={"out": "f4[windows, 64, 32]"},
    ),
    Task(
        HERE / "patch_means.cu",
        inputs=lambda rng, count: {
            "patches": uniform(rng, count, 49, low=0),
            "count": count,
            "h": 1.5,
        },
        sizes={"count": 8192},
        verify_sizes={"count": 70},
        outputs={"denoised": "f4[count, 49]"},
    ),
    Task(
        HERE / "summed_area.cu",
        inputs=lambda rng, width, height: {
            "table": uniform(rng, height, width, low=0),
            "width": width,
            "height": height,
        },
        sizes={"width": 4096, "height": 2048},
        verify_sizes={"width": 75, "height": 41},
        inout=("table",),
    ),
    Task(
        HERE / "luma_dct.cu",
        inputs=lambda rng, w, h: {"luma": uniform(rng, h, w), "w": w, "h": h},
        sizes={"w": 2048, "h": 2048},
        verify_sizes={"w": 24, "h": 16},
        outputs={"coefficients": "f4[h, w]"},
    ),
    Task(
        HERE / "luma_back.cu",
        inputs=lambda rng, w, h: {"coefficients": uniform(rng, h, w), "w": w, "h": h},
        sizes={"w": 2048, "h": 2048},
        verify_sizes={"w": 24, "h": 16},
        outputs={"luma": "f4[h, w]"},
    ),
]
