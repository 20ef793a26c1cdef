"""What training minimises."""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.bench.entry import Entry, Values, uniform
from optiml_magic.bench.floors import Floor

_CROSS = "ScalingIntelligence/KernelBench KernelBench/level1/95_CrossEntropyLoss.py"
_HINGE = "ScalingIntelligence/KernelBench KernelBench/level1/100_HingeLoss.py"


def _logits(rng: np.random.Generator, rows: int, classes: int) -> Values:
    targets = rng.integers(0, classes, rows, dtype=np.int32)
    logits = uniform(rng, rows, classes, low=-4.0, high=4.0)
    return {"logits": logits, "targets": targets, "rows": rows, "classes": classes}


def cross_entropy(logits: Any, targets: Any) -> Any:
    moved = logits - logits.max(axis=1, keepdims=True)
    chosen = np.take_along_axis(moved, targets.astype(np.int64)[:, None], axis=1)[:, 0]
    return np.log(np.exp(moved).sum(axis=1)) - chosen


def _predictions(rng: np.random.Generator, n: int) -> Values:
    signs = (2 * rng.integers(0, 2, n, dtype=np.int8) - 1).astype(np.float32)
    return {"predictions": uniform(rng, n), "targets": signs, "n": n}


def _batch(rng: np.random.Generator, batch: int, classes: int) -> Values:
    made = _logits(rng, batch, classes)
    named = {"predictions": made["logits"], "targets": made["targets"]}
    return {**named, "batch": batch, "classes": classes}


def mean_cross_entropy(predictions: Any, targets: Any) -> Any:
    return np.array([cross_entropy(predictions, targets).mean()])


def _mean_cupy(cp: Any, predictions: Any, targets: Any) -> Any:
    moved = predictions - predictions.max(axis=1, keepdims=True)
    chosen = cp.take_along_axis(moved, targets[:, None], axis=1)[:, 0]
    return (cp.log(cp.exp(moved).sum(axis=1)) - chosen).mean().reshape(1)


TASKS = (
    Entry(
        "cross_entropy", "losses", cross_entropy, _logits,
        full={"rows": 4096, "classes": 16384}, small={"rows": 256, "classes": 256},
        checked={"rows": 132, "classes": 260},
        floor=lambda rows, classes: Floor(
            4 * rows * (classes + 2), flops=3 * rows * classes, special=rows * (classes + 1)
        ),
        torch=lambda t, logits, targets: t.nn.functional.cross_entropy(
            logits, targets.long(), reduction="none"
        ),
    ),
    Entry(
        "hinge_loss", "losses",
        lambda predictions, targets: np.array([np.maximum(0, 1 - predictions * targets).mean()]),
        _predictions,
        full={"n": 1 << 25}, small={"n": 1 << 15}, checked={"n": 10_003},
        floor=lambda n: Floor(8 * n + 4, flops=3 * n),
        outputs={"loss": "f4[1]"},
        torch=lambda _, predictions, targets: (1 - predictions * targets).clamp(min=0)
        .mean().reshape(1),
        libraries={
            "CUB": lambda cp, predictions, targets: cp.maximum(0, 1 - predictions * targets)
            .mean().reshape(1)
        },
        source=_HINGE,
    ),
    Entry(
        "mean_cross_entropy", "losses", mean_cross_entropy, _batch,
        full={"batch": 32768, "classes": 2048}, small={"batch": 256, "classes": 256},
        checked={"batch": 132, "classes": 260},
        floor=lambda batch, classes: Floor(
            4 * batch * (classes + 1) + 4, flops=3 * batch * classes, special=batch * (classes + 1)
        ),
        outputs={"loss": "f4[1]"},
        torch=lambda t, predictions, targets: t.nn.functional.cross_entropy(
            predictions, targets.long()
        ).reshape(1),
        libraries={"CuPy": _mean_cupy}, source=_CROSS,
    ),
)  # fmt: skip
