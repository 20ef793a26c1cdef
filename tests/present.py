"""What this machine has, found once, with the reason that stands beside every skipped test."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from optiml_magic.compilers.nvcc import NvccCompiler
from optiml_magic.errors import MachineError

T = TypeVar("T")


def _nvcc() -> str:
    """The version of nvcc where one runs here."""
    try:
        return NvccCompiler().version
    except MachineError:
        return ""


SOAK = os.environ.get("OPTIML_SOAK") == "1"
SAMPLE = os.environ.get("OPTIML_SAMPLE") == "1"
DRIVER = Path("/proc/driver/nvidia/version").exists()
BROWSER = shutil.which("chromium")
NVCC = _nvcc()


def sampled(names: Iterable[T], every: int = 12) -> list[T]:
    """Every twelfth of many cases that are alike, or all of them for make soak."""
    return list(names)[:: 1 if SOAK else every]


def drawn(case: str, every: int = 5) -> bool:
    """Whether one of many cases that are alike is in the sample, told by its text; all for soak."""
    return SOAK or zlib.crc32(case.encode()) % every == 0


def thinned(cases: Sequence[str], folder: str) -> set[int]:
    """Which cases of a test function ``make test`` runs: one in 75, chosen by their order.

    In the folders where a test runs kernels, one in 56 of the functions that have one case, and of
    those with two or three as many in four.
    """
    first = 0
    if folder in ("primitives", "rewrites"):
        if len(cases) == 1:
            return {0} if drawn(cases[0], 56) else set()
        first = zlib.crc32(cases[0].encode()) % 4
    return {*range(first, len(cases), 75)}


def examples(sample: int, soak: int) -> int:
    """How many examples a property test draws: a fixed sample, or the long count of make soak."""
    return soak if SOAK else sample
