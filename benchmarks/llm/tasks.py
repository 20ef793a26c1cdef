"""Eight small kernels as somebody writes them who is new to CUDA, each with its reference.

Sizes are such that the emulated device evaluates a program within a second or so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic.model.task import Task

_KERNELS = Path(__file__).with_name("kernels")
_SOFTENING = np.float32(0.01)
Rng = np.random.Generator


def _drawn(rng: Rng, *shape: int) -> Any:
    return rng.standard_normal(shape, np.float32)


def softmax(x: Any, **_: Any) -> Any:
    shifted = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    return shifted / shifted.sum(axis=1, keepdims=True)


def stencil(u: Any, **_: Any) -> Any:
    u = u.astype(np.float64)
    out = u.copy()
    around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
    out[1:-1, 1:-1] = 0.5 * u[1:-1, 1:-1] + 0.125 * around
    return out


def product(a: Any, b: Any, **_: Any) -> Any:
    return a.astype(np.float64) @ b.astype(np.float64)


def layer_norm(x: Any, gain: Any, shift: Any, eps: Any, **_: Any) -> Any:
    x = x.astype(np.float64)
    mean, variance = x.mean(axis=1, keepdims=True), x.var(axis=1, keepdims=True)
    return (x - mean) / np.sqrt(variance + eps) * gain + shift


def histogram(data: Any, **_: Any) -> Any:
    return np.bincount(data, minlength=256).astype(np.int32)


def transpose_bias(a: Any, bias: Any, **_: Any) -> Any:
    return (a.astype(np.float64) + bias).T


def column_spread(a: Any, **_: Any) -> Any:
    a = a.astype(np.float64)
    return {"mean": a.mean(axis=0), "largest": np.abs(a).max(axis=0)}


def bodies(position: Any, mass: Any, soft: Any, **_: Any) -> Any:
    at = position.astype(np.float64)
    apart = at[None] - at[:, None]
    distance = np.sqrt((apart**2).sum(axis=2) + soft)
    return (apart * (mass / distance**3)[:, :, None]).sum(axis=1)


def _softmax(rng: Rng) -> dict[str, Any]:
    return {"x": _drawn(rng, 2048, 512), "rows": 2048, "cols": 512}


def _stencil(rng: Rng) -> dict[str, Any]:
    return {"u": _drawn(rng, 1024, 1024), "height": 1024, "width": 1024}


def _product(rng: Rng) -> dict[str, Any]:
    a, b = _drawn(rng, 384, 256), _drawn(rng, 256, 320)
    return {"a": a, "b": b, "m": 384, "n": 320, "k": 256}


def _layer_norm(rng: Rng) -> dict[str, Any]:
    rows, cols = 1024, 768
    vectors = {"gain": _drawn(rng, cols), "shift": _drawn(rng, cols)}
    scalars = {"rows": rows, "cols": cols, "eps": np.float32(1e-5)}
    return {"x": _drawn(rng, rows, cols), **vectors, **scalars}


def _histogram(rng: Rng) -> dict[str, Any]:
    n = 1_000_000
    return {"data": np.minimum(rng.geometric(0.05, n), 255).astype(np.uint8), "n": n}


def _transpose_bias(rng: Rng) -> dict[str, Any]:
    return {"a": _drawn(rng, 1024, 768), "bias": _drawn(rng, 768), "rows": 1024, "cols": 768}


def _column_spread(rng: Rng) -> dict[str, Any]:
    return {"a": _drawn(rng, 2048, 640) + np.float32(1), "rows": 2048, "cols": 640}


def _bodies(rng: Rng) -> dict[str, Any]:
    n = 1536
    mass = rng.uniform(0.1, 1.0, n).astype(np.float32)
    return {"position": _drawn(rng, n, 3), "mass": mass, "n": n, "soft": _SOFTENING}


@dataclass(frozen=True)
class Kernel:
    """What is right for the kernel of a name, its inputs, and outputs as ``Task`` has them."""

    reference: Callable[..., Any]
    inputs: Callable[[Rng], dict[str, Any]]
    outputs: Mapping[str, str]

    def task(self, name: str) -> Task:
        text = (_KERNELS / f"{name}.cu").read_text(encoding="utf-8")
        return Task(text, self.reference, self.inputs, outputs=self.outputs, name=name)


KERNELS: Mapping[str, Kernel] = {
    "softmax": Kernel(softmax, _softmax, {"out": "f4[rows, cols]"}),
    "stencil": Kernel(stencil, _stencil, {"out": "f4[height, width]"}),
    "product": Kernel(product, _product, {"c": "f4[m, n]"}),
    "layer_norm": Kernel(layer_norm, _layer_norm, {"y": "f4[rows, cols]"}),
    "histogram": Kernel(histogram, _histogram, {"counts": "i4[256]"}),
    "transpose_bias": Kernel(transpose_bias, _transpose_bias, {"out": "f4[cols, rows]"}),
    "column_spread": Kernel(
        column_spread, _column_spread, {"mean": "f4[cols]", "largest": "f4[cols]"}
    ),
    "bodies": Kernel(bodies, _bodies, {"pull": "f4[n, 3]"}),
}
SHAPES = ("softmax", "stencil", "product", "layer_norm")


def task(name: str) -> Task:
    """The task of a name of ``KERNELS``."""
    return KERNELS[name].task(name)
