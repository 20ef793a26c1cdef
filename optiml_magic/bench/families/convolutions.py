"""Weighted neighbours: a filter over an image, and a layer of a network."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_WINOGRAD = "zjin-lcf/HeCBench winograd-cuda/main.cu"
_POOL = "ScalingIntelligence/KernelBench KernelBench/level1/42_Max_Pooling_2D.py"


def _filter(rng: np.random.Generator, width: int, height: int, radius: int) -> Values:
    side = 2 * radius + 1
    return {
        "image": uniform(rng, height, width), "weights": uniform(rng, side, side, low=0.0),
        "width": width, "height": height, "radius": radius,
    }  # fmt: skip


def filter_2d(image: Any, weights: Any, radius: Any) -> Any:
    padded = np.pad(image, int(radius), mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape)
    return np.einsum("yxij,ij->yx", windows, weights)


def _filter_torch(t: Any, image: Any, weights: Any, radius: Any) -> Any:
    r, f = int(radius), t.nn.functional
    padded = f.pad(image[None, None], (r, r, r, r), mode="replicate")
    return f.conv2d(padded, weights[None, None])[0, 0]


def _layer(
    rng: np.random.Generator, images: int, channels: int, filters: int, height: int, width: int
) -> Values:
    return {
        "x": uniform(rng, images, channels, height + 2, width + 2),
        "weights": uniform(rng, filters, channels, 3, 3),
        "images": images, "channels": channels, "filters": filters,
        "height": height, "width": width,
    }  # fmt: skip


def layer_3x3(x: Any, weights: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,fcij->nfhw", windows, weights, optimize=True)


def _layer_floor(images: int, channels: int, filters: int, height: int, width: int) -> Floor:
    pixels = images * height * width
    read = images * channels * (height + 2) * (width + 2) + 9 * filters * channels
    return Floor(4 * (read + filters * pixels), flops=18 * pixels * filters * channels)


_WINDOW = {"size": 4, "stride": 2, "padding": 1, "dilation": 1}


def _pooled_size(length: int) -> int:
    reach = _WINDOW["dilation"] * (_WINDOW["size"] - 1) + 1
    return (length + 2 * _WINDOW["padding"] - reach) // _WINDOW["stride"] + 1


def _planes(rng: np.random.Generator, planes: int, height: int, width: int) -> Values:
    sizes = {"planes": planes, "height": height, "width": width}
    pooled = {"high": _pooled_size(height), "wide": _pooled_size(width)}
    return {"x": uniform(rng, planes, height, width), **sizes, **pooled, **_WINDOW}


def max_pool(x: Any) -> Any:
    size, stride, padding, dilation = _WINDOW.values()
    sides = ((0, 0), (padding, padding), (padding, padding))
    padded = np.pad(x, sides, constant_values=-np.inf)
    reach = dilation * (size - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(padded, (reach, reach), axis=(1, 2))
    return windows[:, ::stride, ::stride, ::dilation, ::dilation].max(axis=(3, 4))


def _map(rng: np.random.Generator, width: int, height: int) -> Values:
    made = {"image": uniform(rng, height, width), "weights": uniform(rng, 3, 3)}
    return {**made, "width": width, "height": height}


def winograd(image: Any, weights: Any) -> Any:
    windows = np.lib.stride_tricks.sliding_window_view(image, (3, 3))
    return np.einsum("yxij,ij->yx", windows, weights)


def _winograd_cupy(_: Any, image: Any, weights: Any) -> Any:
    high, wide = image.shape[0] - 2, image.shape[1] - 2
    found = weights[0, 0] * image[:high, :wide]
    for k in range(1, 9):
        i, j = divmod(k, 3)
        found += weights[i, j] * image[i : i + high, j : j + wide]
    return found


TASKS = (
    Entry(
        "filter_2d", "convolutions", filter_2d, _filter,
        full={"width": 8192, "height": 4096, "radius": 2},
        small={"width": 128, "height": 128, "radius": 2},
        checked={"width": 68, "height": 45, "radius": 2},
        floor=lambda width, height, radius: Floor(
            8 * width * height, flops=2 * width * height * (2 * radius + 1) ** 2
        ),
        torch=_filter_torch,
    ),
    Entry(
        "layer_3x3", "convolutions", layer_3x3, _layer,
        full={"images": 16, "channels": 64, "filters": 64, "height": 128, "width": 128},
        small={"images": 1, "channels": 8, "filters": 8, "height": 32, "width": 32},
        checked={"images": 2, "channels": 5, "filters": 3, "height": 20, "width": 36},
        # As it is defined; Winograd's form takes fewer.
        floor=_layer_floor,
        torch=lambda t, x, weights: t.nn.functional.conv2d(x, weights),
    ),
    Entry(
        "max_pool", "convolutions", max_pool, _planes,
        full={"planes": 1024, "height": 256, "width": 256},
        small={"planes": 4, "height": 64, "width": 64},
        checked={"planes": 3, "height": 21, "width": 36},
        floor=lambda planes, height, width: Floor(
            4 * planes * (height * width + _pooled_size(height) * _pooled_size(width)),
            flops=16 * planes * _pooled_size(height) * _pooled_size(width),
        ),
        outputs={"out": "f4[planes, high, wide]"},
        torch=lambda t, x: t.nn.functional.max_pool2d(x, *_WINDOW.values()), source=_POOL,
    ),
    Entry(
        "winograd", "convolutions", winograd, _map,
        full={"width": 8192, "height": 8192}, small={"width": 130, "height": 130},
        checked={"width": 69, "height": 45},
        # As defined, and by Winograd's form as well, of which few operations are multiply-adds.
        floor=lambda width, height: Floor(
            4 * (width * height + (width - 2) * (height - 2)),
            flops=18 * (width - 2) * (height - 2),
        ),
        outputs={"out": "f4[height - 2, width - 2]"},
        torch=lambda t, image, weights: t.nn.functional.conv2d(
            image[None, None], weights[None, None]
        )[0, 0],
        libraries={"CuPy": _winograd_cupy}, source=_WINOGRAD,
    ),
)  # fmt: skip
