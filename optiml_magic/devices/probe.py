"""What the driver says of a card, asked in a process of its own: few commands need a context here.

That takes a second, so whoever knows that somebody will ask begins before all else is loaded.
"""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache
from pathlib import Path

_SECONDS = 120.0
_ASK = """
import json, cupy
p = cupy.cuda.runtime.getDeviceProperties({index})
keys = ("name major minor multiProcessorCount clockRate l2CacheSize sharedMemPerMultiprocessor "
        "sharedMemPerBlockOptin reservedSharedMemPerBlock regsPerMultiprocessor "
        "maxThreadsPerMultiProcessor maxBlocksPerMultiProcessor memoryClockRate memoryBusWidth "
        "totalGlobalMem")
found = {{k: (p[k].decode() if k == "name" else int(p[k])) for k in keys.split() if k in p}}
found["uuid"] = p["uuid"].hex() if isinstance(p.get("uuid"), bytes) else ""
print(json.dumps(found))
"""

_BEGUN: dict[int, subprocess.Popen[str]] = {}


def has_driver() -> bool:
    """Whether there may be a driver of NVIDIA's."""
    return sys.platform == "win32" or Path("/proc/driver/nvidia/version").exists()


def begin(index: int = 0) -> None:
    """Ask a card now, and do not wait; nothing where there is no driver."""
    if has_driver() and index not in _BEGUN:
        _BEGUN[index] = _started(index)


@lru_cache(maxsize=8)
def properties(index: int) -> tuple[str, str]:
    """The properties of a card as JSON, else empty and why it does not answer."""
    process = _BEGUN.pop(index, None) or _started(index)
    try:
        out, err = process.communicate(timeout=_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        return "", f"no answer within {_SECONDS:g} s"
    if process.returncode != 0:
        return "", (err.strip().splitlines() or ["no answer"])[-1][:200]
    return out, ""


def _started(index: int) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603  # our own interpreter
        [sys.executable, "-c", _ASK.format(index=index)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
