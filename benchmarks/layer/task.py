"""The layer of ``layer.cu`` as a task: three kernels, 203 lines."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from optiml_magic import Task

M, N, K = 256, 256, 256


def reference(**given: Any) -> dict[str, Any]:
    """The layer in NumPy."""
    x = given["a"] @ given["b"] + given["bias"]
    hidden = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    mean, variance = hidden.mean(axis=1, keepdims=True), hidden.var(axis=1, keepdims=True)
    y = (hidden - mean) / np.sqrt(variance + given["eps"]) * given["gain"] + given["shift"]
    greatest = y.max(axis=1)
    return {"y": y, "energy": greatest + np.log(np.exp(y - greatest[:, None]).sum(axis=1))}


def inputs(rng: Any) -> dict[str, Any]:
    """Fresh arrays."""
    drawn = {
        "a": rng.standard_normal((M, K), dtype=np.float32),
        "b": rng.standard_normal((K, N), dtype=np.float32) / np.float32(np.sqrt(K)),
        "bias": rng.standard_normal(N, dtype=np.float32),
        "gain": rng.uniform(0.5, 1.5, N).astype(np.float32),
        "shift": rng.standard_normal(N, dtype=np.float32),
    }
    return {**drawn, "m": M, "n": N, "k": K, "eps": np.float32(1e-5)}


task = Task(
    kernel=Path(__file__).with_name("layer.cu"),
    reference=reference,
    inputs=inputs,
    outputs={"y": f"f4[{M}, {N}]", "energy": f"f4[{M}]"},
    name="layer",
)
