"""One reference with inputs that are made at any sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from optiml_magic.model.task import Task

Values = dict[str, Any]


@dataclass(frozen=True)
class Entry:
    """``inputs`` of a generator and of sizes, as in ``Task``."""

    family: str
    reference: Callable[..., Any]
    inputs: Callable[..., Values]
    sizes: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.reference.__name__

    @property
    def task(self) -> Task:
        return Task(reference=self.reference, inputs=self.inputs, sizes=self.sizes)


def uniform(rng: np.random.Generator, *shape: int, low: float = -1.0, high: float = 1.0) -> Any:
    return rng.uniform(low, high, shape).astype(np.float32)


def matrix(rng: np.random.Generator, n: int, m: int) -> Values:
    return {"x": uniform(rng, n, m)}


def vector(rng: np.random.Generator, n: int) -> Values:
    return {"x": uniform(rng, n)}


def pair(rng: np.random.Generator, n: int) -> Values:
    return {"x": uniform(rng, n), "y": uniform(rng, n)}
