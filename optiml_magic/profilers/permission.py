"""Whether ncu may read the hardware counters here, and the one thing to do where it may not.

Source: NVIDIA, "ERR_NVGPUCTRPERM: permission issue with performance counters".
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from optiml_magic.profilers.report import reader_folder

REFUSAL = "no hardware counters: "
_DRIVER = Path("/proc/driver/nvidia")
_ADMIN_ONLY = re.compile(r"^RmProfilingAdminOnly:\s*1", re.MULTILINE)
_UNLOCK = (
    "echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' | sudo tee "
    "/etc/modprobe.d/nvidia-counters.conf, then reboot; or run as root (docker: "
    "--cap-add=SYS_ADMIN)"
)


@dataclass(frozen=True)
class Permission:
    """``remedy`` is empty where nothing is to be done."""

    well: bool
    found: str
    remedy: str = ""


def permission(notes: Sequence[str] = (), *, emulated: bool) -> Permission:
    """What stands between ncu and the counters; ``notes`` are those of a run that tried."""
    tool = shutil.which("ncu")
    refused = [n.removeprefix(REFUSAL) for n in notes if n.startswith(REFUSAL)]
    if not (_DRIVER / "version").exists():
        found = "no NVIDIA driver here: no hardware counters"
        return Permission(True, found, "none needed; the emulated device counts by itself")
    if tool is None:
        remedy = "install Nsight Compute (it is in the CUDA toolkit) and put ncu on the PATH"
        return Permission(False, "not on the PATH: profiles on a GPU have no counters", remedy)
    if _locked() or any("ERR_NVGPUCTRPERM" in reason for reason in refused):
        found = f"{tool}; the driver keeps the counters from ordinary users (ERR_NVGPUCTRPERM)"
        return Permission(False, found, _UNLOCK)
    if refused:
        return Permission(False, tool, refused[0])
    if reader_folder(tool) is None:
        found = f"{tool}; figures by line and NVIDIA's rules need its Python reader"
        return Permission(False, found, "pip install ncu-report, of the release of ncu")
    if emulated:
        return Permission(True, f"{tool}, not tried: kernels ran emulated", "try it: --device cuda")
    return Permission(True, f"{tool} reads the counters")


def _locked() -> bool:
    """Whether the module was loaded for administrators alone, and we are none."""
    params = _DRIVER / "params"
    is_root = hasattr(os, "geteuid") and os.geteuid() == 0
    return not is_root and params.exists() and bool(_ADMIN_ONLY.search(params.read_text()))
