"""What a row says of the machine that it was made on."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import metadata
from itertools import pairwise

from optiml_magic.devices.choice import Choice

_PACKAGES = (
    "optiml-magic",
    "numpy", "cupy-cuda13x", "cupy-cuda12x", "torch", "triton", "cuda-bindings",
    "nvidia-cuda-nvrtc", "llvmlite",
)  # fmt: skip
_QUERY = "name,driver_version,clocks.max.sm,clocks.max.mem,memory.total"


def versions() -> dict[str, str]:
    """Of this package, of Python, and of those packages that are installed."""
    found = {"python": sys.version.split()[0]}
    for name in _PACKAGES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def hardware(choice: Choice) -> str:
    """The card as nvidia-smi tells of it; of an emulated device its chip."""
    if choice.is_emulated:
        return f"{choice.chip.title}, emulated"
    found = shutil.which("nvidia-smi")
    if found is None:
        return choice.chip.title
    which = ["-i", f"GPU-{_dashed(choice.card)}"] if choice.card else []
    command = [found, f"--query-gpu={_QUERY}", "--format=csv,noheader", *which]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    return done.stdout.strip() if done.returncode == 0 else choice.chip.title


def _dashed(uuid: str) -> str:
    """As the driver spells it: 8, 4, 4, 4 and 12 digits."""
    ends = (0, 8, 12, 16, 20, 32)
    return "-".join(uuid[a:b] for a, b in pairwise(ends))
