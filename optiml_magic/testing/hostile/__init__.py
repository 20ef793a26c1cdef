"""Hostile kernels: programs that hang, crash, flood or exhaust whoever evaluates them.

Each has the outcomes that it may end with. After each, a healthy program must be evaluated as if
nothing had happened. All of them pretend to double an array, so one task serves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optiml_magic.model.task import Task
from optiml_magic.testing.hostile.base import Hostile, doubling
from optiml_magic.testing.hostile.compiling import COMPILING
from optiml_magic.testing.hostile.running import RUNNING
from optiml_magic.testing.hostile.unfit import UNFIT

N = 1000
# Compiling "too many registers for its block" takes 4 s where nothing else runs.
SETTINGS = {"run_seconds": 6.0, "compile_seconds": 30.0, "instructions": 20_000_000}
HOSTILE: dict[str, Hostile] = {**RUNNING, **COMPILING, **UNFIT}


def healthy(number: int) -> str:
    """A right program; each number gives machine code of its own, so none is a duplicate."""
    return doubling(f"if (i == -{number + 1}) out[n] = 0.0f;")


def task() -> Task:
    """Double 1000 numbers."""
    x = np.random.default_rng(0).uniform(-1, 1, N).astype(np.float32)
    return Task(healthy(0), reference=_doubled, inputs={"x": x, "n": N}, name="twice")


def _doubled(x: Any) -> Any:
    return 2 * x
