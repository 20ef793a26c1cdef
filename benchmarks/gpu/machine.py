"""The machine that a record was made on."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import metadata

_QUERY = "name,driver_version,clocks.max.sm,clocks.max.mem,memory.total"
CARD = os.environ.get("CUDA_VISIBLE_DEVICES", "0")  # as nvidia-smi numbers them
_NAMES = ("numpy", "cupy-cuda13x", "cupy-cuda12x", "cuda-bindings", "nvidia-cuda-nvrtc", "llvmlite")


def gpu() -> str:
    """Name, driver, clocks and memory of the card, as nvidia-smi tells them."""
    query = ["nvidia-smi", f"--query-gpu={_QUERY}", "--format=csv,noheader", "-i", CARD]
    return subprocess.run(query, capture_output=True, text=True, check=True).stdout.strip()


def versions() -> dict[str, str]:
    """Python, and of the packages that matter those that are installed."""
    found = {"python": sys.version.split()[0]}
    for name in _NAMES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
