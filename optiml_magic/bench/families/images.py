"""Images of bytes, interleaved and in planes, and filters whose size the data decide."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_SOBEL = "NVIDIA/cuda-samples Samples/5_Domain_Specific/SobelFilter"
_LANCZOS = "zjin-lcf/HeCBench lanczos-cuda/main.cu"
_MEDIAN = "zjin-lcf/HeCBench medianfilter-cuda/main.cu"
_BILATERAL = "zjin-lcf/HeCBench bilateral-cuda/main.cu"
_ASMOOTH = "zjin-lcf/HeCBench asmooth-cuda/main.cu"


def _bytes(rng: np.random.Generator, *shape: int) -> Any:
    return rng.integers(0, 256, shape, dtype=np.uint8)


def _pixels(rng: np.random.Generator, width: int, height: int) -> Values:
    return {"rgb": _bytes(rng, height, width, 3), "width": width, "height": height}


def grey(rgb: Any) -> Any:
    wide = rgb.astype(np.int32)
    return ((77 * wide[..., 0] + 150 * wide[..., 1] + 29 * wide[..., 2]) >> 8).astype(np.uint8)


def _grey_torch(t: Any, rgb: Any) -> Any:
    wide = rgb.to(t.int32)
    return ((77 * wide[..., 0] + 150 * wide[..., 1] + 29 * wide[..., 2]) >> 8).to(t.uint8)


def _layers(rng: np.random.Generator, n: int) -> Values:
    return {**{name: _bytes(rng, n) for name in ("front", "back", "alpha")}, "n": n}


def blend(front: Any, back: Any, alpha: Any) -> Any:
    a = alpha.astype(np.int32)
    return ((front * a + back * (255 - a) + 127) // 255).astype(np.uint8)


def _blend_torch(t: Any, front: Any, back: Any, alpha: Any) -> Any:
    a = alpha.to(t.int32)
    return ((front * a + back * (255 - a) + 127) // 255).to(t.uint8)


def _image(rng: np.random.Generator, width: int, height: int) -> Values:
    return {"image": _bytes(rng, height, width), "width": width, "height": height}


def _edges(wide: Any) -> Any:
    """The sums of both gradients, of an image with one pixel more on each side."""
    left, right = wide[:, :-2], wide[:, 2:]
    above, below = wide[:-2], wide[2:]
    across = (right - left)[:-2] + 2 * (right - left)[1:-1] + (right - left)[2:]
    down = (above - below)[:, :-2] + 2 * (above - below)[:, 1:-1] + (above - below)[:, 2:]
    return abs(across) + abs(down)


def sobel(image: Any) -> Any:
    found = _edges(np.pad(image.astype(np.int32), 1, mode="edge"))
    return np.minimum(found, 255).astype(np.uint8)


def _sobel_torch(t: Any, image: Any) -> Any:
    wide = t.nn.functional.pad(image.float()[None, None], (1, 1, 1, 1), mode="replicate")[0, 0]
    return _edges(wide).clamp(max=255).to(t.uint8)


def _lights(rng: np.random.Generator, width: int, height: int) -> Values:
    return {
        "image": rng.integers(0, 256, (height, width), dtype=np.uint8).astype(np.float32),
        "width": width, "height": height, "largest": 4, "enough": np.float32(5000.0),
    }  # fmt: skip


def adaptive_smooth(image: Any, largest: Any, enough: Any) -> Any:
    height, width = image.shape
    box = np.zeros(image.shape, np.int32)
    total, count = np.zeros(image.shape), np.ones(image.shape)
    growing = total < enough
    for q in range(1, int(largest) + 1):
        rows = [(max(y - q, 0), min(y + q + 1, height)) for y in range(height)]
        cols = [(max(x - q, 0), min(x + q + 1, width)) for x in range(width)]
        top, bottom = (np.array(side)[:, None] for side in zip(*rows, strict=True))
        left, right = (np.array(side)[None, :] for side in zip(*cols, strict=True))
        table = np.pad(image, ((1, 0), (1, 0))).cumsum(0).cumsum(1)
        found = table[bottom, right] - table[top, right] - table[bottom, left] + table[top, left]
        box = np.where(growing, q, box)
        total = np.where(growing, found, total)
        count = np.where(growing, (bottom - top) * (right - left), count)
        growing = growing & (total < enough)
    return {"box": box.astype(np.int32), "out": total / count}


def _enlargeable(rng: np.random.Generator, width: int, height: int, factor: int) -> Values:
    image = uniform(rng, height, width, low=0.0)
    return {"image": image, "width": width, "height": height, "factor": factor}


def _stretched(xp: Any, image: Any, steps: Any, factor: int) -> Any:
    """Rows between rows by Lanczos weights of six; ``steps`` counts those there will be."""
    at = steps / factor
    places = xp.floor(at)[:, None] + steps[:6] - 2
    weights = xp.sinc(at[:, None] - places) * xp.sinc((at[:, None] - places) / 3)
    weights = weights / weights.sum(1)[:, None]
    rows = places.clip(0, image.shape[0] - 1).astype(int)
    return sum(weights[:, k, None] * image[rows[:, k]] for k in range(6))


def lanczos(image: Any, factor: Any) -> Any:
    for _ in range(2):
        steps = np.arange(image.shape[0] * int(factor))
        image = _stretched(np, image, steps, int(factor)).T
    return image


def _lanczos_cupy(cp: Any, image: Any, factor: Any) -> Any:
    for _ in range(2):
        steps = cp.arange(image.shape[0] * int(factor)).astype(image.dtype)
        image = _stretched(cp, image, steps, int(factor)).T
    return image


def _tones(rng: np.random.Generator, width: int, height: int, radius: int) -> Values:
    sizes = {"width": width, "height": height, "radius": radius}
    sigmas = {"spatial": np.float32(3.0), "tonal": np.float32(0.2)}
    return {"image": uniform(rng, height, width, low=0.0), **sizes, **sigmas}


def _smoothed(xp: Any, image: Any, padded: Any, radius: int, spatial: Any, tonal: Any) -> Any:
    height, width = image.shape
    total, weights = image * 0, image * 0
    for i in range(2 * radius + 1):
        for j in range(2 * radius + 1):
            value = padded[i : i + height, j : j + width]
            far = ((i - radius) ** 2 + (j - radius) ** 2) / (2 * spatial * spatial)
            weight = xp.exp(-((value - image) ** 2) / (2 * tonal * tonal) - far)
            total, weights = total + weight * value, weights + weight
    return total / weights


def bilateral(image: Any, radius: Any, spatial: Any, tonal: Any) -> Any:
    padded = np.pad(image, int(radius), mode="edge")
    return _smoothed(np, image, padded, int(radius), spatial, tonal)


def _bilateral_torch(t: Any, image: Any, radius: Any, spatial: Any, tonal: Any) -> Any:
    r = int(radius)
    padded = t.nn.functional.pad(image[None, None], (r, r, r, r), mode="replicate")[0, 0]
    return _smoothed(t, image, padded, r, float(spatial), float(tonal))


def _colours(rng: np.random.Generator, width: int, height: int) -> Values:
    return {"image": _bytes(rng, height, width, 4), "width": width, "height": height}


def median_3x3(image: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(_framed(np, image), (3, 3), axis=(0, 1))
    found = np.median(windows, axis=(3, 4)).astype(np.uint8)
    found[..., 3] = 0
    return found


def _framed(xp: Any, image: Any) -> Any:
    return xp.pad(image, ((1, 1), (1, 1), (0, 0)))


def _ordered(xp: Any, a: Any, b: Any, c: Any) -> Any:
    a, b = xp.minimum(a, b), xp.maximum(a, b)
    b, c = xp.minimum(b, c), xp.maximum(b, c)
    return xp.minimum(a, b), xp.maximum(a, b), c


def _medians(xp: Any, framed: Any) -> Any:
    """Of columns put in order: the middle one of the greatest low, middle middle and least high."""
    width = framed.shape[1] - 2
    columns = _ordered(xp, framed[:-2], framed[1:-1], framed[2:])
    low, middle, high = (_ordered(xp, *(c[:, k : k + width] for k in range(3))) for c in columns)
    found = _ordered(xp, low[2], middle[1], high[0])[1]
    found[..., 3] = 0
    return found


TASKS = (
    Entry(
        "grey", "images", grey, _pixels,
        full={"width": 8192, "height": 8192}, small={"width": 256, "height": 256},
        checked={"width": 132, "height": 70},
        floor=lambda width, height: Floor(4 * width * height),
        torch=_grey_torch,
    ),
    Entry(
        "blend", "images", blend, _layers,
        full={"n": 1 << 26}, small={"n": 1 << 17}, checked={"n": 20_003},
        floor=lambda n: Floor(4 * n),
        torch=_blend_torch,
    ),
    Entry(
        "sobel", "images", sobel, _image,
        full={"width": 16384, "height": 8192}, small={"width": 256, "height": 256},
        checked={"width": 132, "height": 70},
        floor=lambda width, height: Floor(2 * width * height),
        torch=_sobel_torch, source=_SOBEL, opened=True,
    ),
    Entry(
        "adaptive_smooth", "images", adaptive_smooth, _lights,
        full={"width": 4096, "height": 4096}, small={"width": 64, "height": 64},
        checked={"width": 68, "height": 45},
        floor=lambda width, height: Floor(12 * width * height),
        source=_ASMOOTH, opened=True,
    ),
    Entry(
        "lanczos", "images", lanczos, _enlargeable,
        full={"width": 4096, "height": 2048, "factor": 2},
        small={"width": 96, "height": 64, "factor": 2},
        checked={"width": 36, "height": 22, "factor": 3},
        # Rows between rows, then columns between columns, by weights from a table.
        floor=lambda width, height, factor: Floor(
            4 * width * height * (1 + factor**2), flops=12 * width * height * factor * (1 + factor)
        ),
        outputs={"out": "f4[height * factor, width * factor]"},
        libraries={"CuPy": _lanczos_cupy}, source=_LANCZOS, opened=True,
    ),
    Entry(
        "bilateral", "images", bilateral, _tones,
        full={"width": 4096, "height": 4096, "radius": 4},
        small={"width": 96, "height": 96, "radius": 4},
        checked={"width": 68, "height": 45, "radius": 3},
        # What distance says comes from a table, what values say is an exponential each.
        floor=lambda width, height, radius: Floor(
            8 * width * height, flops=7 * width * height * (2 * radius + 1) ** 2,
            special=width * height * ((2 * radius + 1) ** 2 + 1),
        ),
        torch=_bilateral_torch, source=_BILATERAL, opened=True,
    ),
    Entry(
        "median_3x3", "images", median_3x3, _colours,
        full={"width": 8192, "height": 4096}, small={"width": 96, "height": 96},
        checked={"width": 68, "height": 45},
        floor=lambda width, height: Floor(8 * width * height),
        torch=lambda t, image: _medians(t, t.nn.functional.pad(image, (0, 0, 1, 1, 1, 1))),
        libraries={"CuPy": lambda cp, image: _medians(cp, _framed(cp, image))}, source=_MEDIAN,
        opened=True,
    ),
)  # fmt: skip
