"""What a card says of itself, by the driver's own library; nothing is ever set.

By ctypes: the library comes with every driver, a package for it does not. Source: NVML API
Reference, "Device Queries" and "nvmlClocksEventReasons".
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_NAMES = ("nvml.dll",) if sys.platform == "win32" else ("libnvidia-ml.so.1", "libnvidia-ml.so")
_SM, _MEMORY, _CORE = 1, 2, 0  # NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU
# The name since driver 535, then the older one.
_REASONS = ("CurrentClocksEventReasons", "CurrentClocksThrottleReasons")


class Nvml:
    """One card by its PCI bus id, as CUDA gives it: an index may mean another card to NVML.

    A figure that it does not give is None, and ``refused`` says why: of the last that was refused.
    """

    def __init__(self, bus: str) -> None:
        self.refused = ""
        self.is_open = False  # whether it answers for this card at all
        self._library = _loaded()
        self._card = ctypes.c_void_p()
        if self._library is None:
            self.refused = "NVML is not installed"
            return
        self._library.nvmlErrorString.restype = ctypes.c_char_p
        self.is_open = self._call("nvmlInit_v2") and self._call(
            "nvmlDeviceGetHandleByPciBusId_v2", bus.encode(), ctypes.byref(self._card)
        )

    def sm_clock(self) -> int | None:
        """MHz."""
        return self._read("ClockInfo", ctypes.c_uint(), _SM)

    def memory_clock(self) -> int | None:
        """MHz."""
        return self._read("ClockInfo", ctypes.c_uint(), _MEMORY)

    def celsius(self) -> int | None:
        return self._read("Temperature", ctypes.c_uint(), _CORE)

    def watts(self) -> float | None:
        milliwatts = self._read("PowerUsage", ctypes.c_uint())
        return None if milliwatts is None else milliwatts / 1e3

    def joules(self) -> float | None:
        """Energy since the driver was loaded."""
        millijoules = self._read("TotalEnergyConsumption", ctypes.c_ulonglong())
        return None if millijoules is None else millijoules / 1e3

    def reasons(self) -> int | None:
        """Bits of what keeps a clock below its highest."""
        known = [what for what in _REASONS if hasattr(self._library, f"nvmlDeviceGet{what}")]
        return self._read((*known, *_REASONS)[0], ctypes.c_ulonglong())

    def _read(self, what: str, value: Any, *arguments: int) -> int | None:
        if not self.is_open:
            return None
        answered = self._call(f"nvmlDeviceGet{what}", self._card, *arguments, ctypes.byref(value))
        return int(value.value) if answered else None

    def _call(self, name: str, *arguments: Any) -> bool:
        function = getattr(self._library, name, None)
        if function is None:
            self.refused = f"NVML has no {name}"
            return False
        status = function(*arguments)
        if status:
            self.refused = f"NVML refuses: {self._library.nvmlErrorString(status).decode()}"
        return not status


def _loaded() -> Any:
    """The library; None where no driver has brought it."""
    for name in _NAMES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None
