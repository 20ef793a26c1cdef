"""Stencils, images, convolutions and layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from tests.references.entry import Entry, Values, matrix, uniform, vector

Rng = np.random.Generator
_SOBEL = np.array([[1.0, 0.0, -1.0], [2.0, 0.0, -2.0], [1.0, 0.0, -1.0]], np.float32)


def jacobi(u: Any, f: Any) -> Any:
    out = u.copy()
    out[1:-1, 1:-1] = 0.25 * (
        u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - f[1:-1, 1:-1]
    )
    return out


def heat_steps(x: Any) -> Any:
    for _ in range(3):
        x = x + 0.1 * (np.roll(x, 1) + np.roll(x, -1) - 2 * x)
    return x


def life(cells: Any) -> Any:
    around = sum(
        np.roll(cells, (dy, dx), (0, 1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if dy or dx
    )
    return ((around == 3) | ((cells == 1) & (around == 2))).astype(cells.dtype)


def upwind(x: Any) -> Any:
    return x[1:] - 0.5 * np.diff(x)


def sobel(x: Any) -> Any:
    padded = np.pad(x, 1, mode="edge")
    rows, cols = x.shape
    total = np.zeros_like(x)
    for dy in range(3):
        for dx in range(3):
            total += _SOBEL[dy, dx] * padded[dy : dy + rows, dx : dx + cols]
    return total


def box_blur(x: Any) -> Any:
    return sliding_window_view(np.pad(x, 2, mode="reflect"), (5, 5)).mean(axis=(2, 3))


def max_pool(x: Any) -> Any:
    n, m = x.shape
    return x.reshape(n // 2, 2, m // 2, 2).max(axis=(1, 3))


def grey(image: Any) -> Any:
    return image @ np.array([0.299, 0.587, 0.114], np.float32)


def brightened(pixels: Any) -> Any:
    wide = pixels.astype(np.int32) * 3 // 2 + 10
    return np.minimum(wide, 255).astype(np.uint8)


def convolution(x: Any, kernel: Any) -> Any:
    windows = sliding_window_view(x, kernel.shape[0])
    return (windows * kernel).sum(axis=-1)


def layer_3x3(images: Any, filters: Any) -> Any:
    padded = np.pad(images, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = sliding_window_view(padded, (3, 3), axis=(2, 3))
    return np.einsum("nchwij,fcij->nfhw", windows, filters)


def transposed(x: Any) -> Any:
    return np.ascontiguousarray(x.T)


def interleaved(x: Any, y: Any) -> Any:
    return np.stack([x, y], axis=-1).reshape(-1)


def to_patches(x: Any) -> Any:
    n, m = x.shape
    return x.reshape(n // 4, 4, m // 4, 4).transpose(0, 2, 1, 3).reshape(-1, 16)


def joined(x: Any, y: Any) -> Any:
    return np.concatenate([x, y[::-1] * 2, np.zeros(7, np.float32)])


def _grids(rng: Rng, n: int, m: int) -> Values:
    return {"u": uniform(rng, n, m), "f": uniform(rng, n, m)}


def _cells(rng: Rng, n: int, m: int) -> Values:
    return {"cells": rng.integers(0, 2, (n, m)).astype(np.int32)}


def _even(rng: Rng, half: int, other: int) -> Values:
    return {"x": uniform(rng, 2 * half, 2 * other)}


def _fours(rng: Rng, rows: int, cols: int) -> Values:
    return {"x": uniform(rng, 4 * rows, 4 * cols)}


def _image(rng: Rng, n: int, m: int) -> Values:
    return {"image": uniform(rng, n, m, 3, low=0.0)}


def _pixels(rng: Rng, n: int, m: int) -> Values:
    return {"pixels": rng.integers(0, 256, (n, m)).astype(np.uint8)}


def _signal(rng: Rng, n: int) -> Values:
    return {"x": uniform(rng, n), "kernel": uniform(rng, 9)}


def _layer(rng: Rng, n: int, c: int, f: int, h: int, w: int) -> Values:
    return {"images": uniform(rng, n, c, h, w), "filters": uniform(rng, f, c, 3, 3)}


def _pair(rng: Rng, n: int) -> Values:
    return {"x": uniform(rng, n), "y": uniform(rng, n)}


REFERENCES = (
    Entry("stencils", jacobi, _grids, {"n": 60, "m": 70}),
    Entry("stencils", heat_steps, vector, {"n": 3000}),
    Entry("stencils", life, _cells, {"n": 50, "m": 60}),
    Entry("stencils", upwind, vector, {"n": 3000}),
    Entry("images", sobel, matrix, {"n": 50, "m": 60}),
    Entry("images", box_blur, matrix, {"n": 50, "m": 60}),
    Entry("images", max_pool, _even, {"half": 30, "other": 40}),
    Entry("images", grey, _image, {"n": 50, "m": 60}),
    Entry("images", brightened, _pixels, {"n": 50, "m": 60}),
    Entry("convolutions", convolution, _signal, {"n": 3000}),
    Entry("convolutions", layer_3x3, _layer, {"n": 2, "c": 3, "f": 4, "h": 12, "w": 20}),
    Entry("layouts", transposed, matrix, {"n": 70, "m": 90}),
    Entry("layouts", interleaved, _pair, {"n": 2000}),
    Entry("layouts", to_patches, _fours, {"rows": 12, "cols": 15}),
    Entry("layouts", joined, _pair, {"n": 2000}),
)
