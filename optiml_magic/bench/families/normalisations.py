"""Rows, columns and planes put on one scale."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_SOFTMAX = "karpathy/llm.c dev/cuda/softmax_forward.cu"
_LAYER = "karpathy/llm.c dev/cuda/layernorm_forward.cu"
_BATCH = "ScalingIntelligence/KernelBench KernelBench/level1/33_BatchNorm.py"


def _rows(rng: np.random.Generator, rows: int, cols: int) -> Values:
    return {
        "x": uniform(rng, rows, cols),
        "gamma": uniform(rng, cols), "beta": uniform(rng, cols), "rows": rows, "cols": cols,
    }  # fmt: skip


def layer_norm(x: Any, gamma: Any, beta: Any) -> Any:
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5) * gamma + beta


def softmax(x: Any, axis: int = 1) -> Any:
    powers = np.exp(x - x.max(axis=axis, keepdims=True))
    return powers / powers.sum(axis=axis, keepdims=True)


def softmax_rows(inp: Any) -> Any:
    return softmax(inp)


def _softmax_rows_cupy(cp: Any, inp: Any) -> Any:
    return _softmax_cupy(cp, inp)


def _softmax_cupy(cp: Any, x: Any) -> Any:
    powers = cp.exp(x - x.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def _channels(rng: np.random.Generator, images: int, channels: int, pixels: int) -> Values:
    x = uniform(rng, images, channels, pixels, low=-4.0, high=4.0)
    return {"x": x, "images": images, "channels": channels, "pixels": pixels}


def _logits(rng: np.random.Generator, N: int, C: int) -> Values:  # noqa: N803  # the kernel's names
    return {"inp": uniform(rng, N, C, low=-4.0, high=4.0), "N": N, "C": C}


def _planes(rng: np.random.Generator, images: int, channels: int, pixels: int) -> Values:
    found = _channels(rng, images, channels, pixels)
    return {**found, "weight": uniform(rng, channels), "bias": uniform(rng, channels)}


def batch_norm(x: Any, weight: Any, bias: Any) -> Any:
    mean, variance = x.mean(axis=(0, 2)), x.var(axis=(0, 2))
    scaled = (x - mean[:, None]) / np.sqrt(variance[:, None] + 1e-5)
    return scaled * weight[:, None] + bias[:, None]


def _weighted(rng: np.random.Generator, N: int, C: int) -> Values:  # noqa: N803
    made = {"inp": uniform(rng, N, C), "weight": uniform(rng, C), "bias": uniform(rng, C)}
    return {**made, "N": N, "C": C}


def layer_norm_kept(inp: Any, weight: Any, bias: Any) -> Any:
    mean, rstd = inp.mean(axis=1), 1 / np.sqrt(inp.var(axis=1) + 1e-5)
    out = (inp - mean[:, None]) * rstd[:, None] * weight + bias
    return {"out": out, "mean": mean, "rstd": rstd}


def _kept_torch(t: Any, inp: Any, weight: Any, bias: Any) -> Any:
    out, mean, rstd = t.native_layer_norm(inp, (inp.shape[1],), weight, bias, 1e-5)
    return out, mean[:, 0], rstd[:, 0]


TASKS = (
    Entry(
        "layer_norm", "normalisations", layer_norm, _rows,
        full={"rows": 32768, "cols": 1024}, small={"rows": 512, "cols": 256},
        checked={"rows": 132, "cols": 260},
        floor=lambda rows, cols: Floor(8 * (rows + 1) * cols, flops=7 * rows * cols),
        torch=lambda t, x, gamma, beta, cols: t.nn.functional.layer_norm(x, (cols,), gamma, beta),
    ),
    Entry(
        "softmax_channels", "normalisations", softmax, _channels,
        full={"images": 16, "channels": 64, "pixels": 32768},
        small={"images": 2, "channels": 32, "pixels": 2048},
        checked={"images": 3, "channels": 20, "pixels": 132},
        floor=lambda images, channels, pixels: Floor(
            8 * images * channels * pixels, flops=4 * images * channels * pixels,
            special=images * pixels * (channels + 1),
        ),
        torch=lambda t, x: t.softmax(x, dim=1), libraries={"CuPy": _softmax_cupy},
    ),
    Entry(
        "softmax_rows", "normalisations", softmax_rows, _logits,
        full={"N": 16384, "C": 2048}, small={"N": 256, "C": 256}, checked={"N": 132, "C": 260},
        floor=lambda N, C: Floor(8 * N * C, flops=4 * N * C, special=N * (C + 1)),  # noqa: N803
        torch=lambda t, inp: t.softmax(inp, dim=1),
        libraries={"CuPy": _softmax_rows_cupy},
        outputs={"out": "f4[N, C]"},
        source=_SOFTMAX,
    ),
    Entry(
        "batch_norm", "normalisations", batch_norm, _planes,
        full={"images": 16, "channels": 64, "pixels": 32768},
        small={"images": 2, "channels": 16, "pixels": 2048},
        checked={"images": 3, "channels": 5, "pixels": 516},
        floor=lambda images, channels, pixels: Floor(
            8 * images * channels * pixels, flops=5 * images * channels * pixels
        ),
        torch=lambda t, x, weight, bias: t.nn.functional.batch_norm(
            x, None, None, weight, bias, training=True
        ),
        source=_BATCH, opened=True,
    ),
    Entry(
        "layer_norm_kept", "normalisations", layer_norm_kept, _weighted,
        full={"N": 32768, "C": 768}, small={"N": 512, "C": 96}, checked={"N": 132, "C": 260},
        floor=lambda N, C: Floor(8 * (N * C + N + C), flops=7 * N * C),  # noqa: N803
        outputs={"out": "f4[N, C]", "mean": "f4[N]", "rstd": "f4[N]"},
        torch=_kept_torch, source=_LAYER,
    ),
)  # fmt: skip
