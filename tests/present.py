"""What this machine has, found once, with the reason that stands beside every skipped test."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

SOAK = os.environ.get("OPTIML_SOAK") == "1"
DRIVER = Path("/proc/driver/nvidia/version").exists()
BROWSER = shutil.which("chromium")


def examples(sample: int, soak: int) -> int:
    """How many examples a property test draws: a fixed sample, or the long count of make soak."""
    return soak if SOAK else sample
