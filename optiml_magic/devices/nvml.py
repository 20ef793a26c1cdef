"""What a card draws, by the driver's own library. Source: NVML API Reference, "Device Queries".

Five functions by ctypes: the library comes with every driver, a package for it does not.
"""

from __future__ import annotations

import ctypes
import sys
from typing import Any

_NAMES = ("nvml.dll",) if sys.platform == "win32" else ("libnvidia-ml.so.1", "libnvidia-ml.so")
_SM, _MEMORY, _CORE = 1, 2, 0  # NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU


class Nvml:
    """One card by its PCI bus id, as CUDA gives it. ``refused`` says why it does not answer."""

    def __init__(self, bus: str) -> None:
        self.refused = ""
        self._card = ctypes.c_void_p()
        self._library: Any = None
        for name in _NAMES:
            try:
                self._library = ctypes.CDLL(name)
                break
            except OSError:
                self.refused = f"NVML is not here: no {name}"
        if self._library is None:
            return
        self.refused = ""
        self._call("nvmlInit_v2")
        self._call("nvmlDeviceGetHandleByPciBusId_v2", bus.encode(), ctypes.byref(self._card))

    def joules(self) -> float | None:
        """Energy of the card since the driver was loaded; None where it is refused."""
        value = ctypes.c_ulonglong()
        return value.value / 1e3 if self._read("TotalEnergyConsumption", value) else None

    def sm_hertz(self) -> float:
        return self._unsigned("ClockInfo", _SM) * 1e6

    def memory_hertz(self) -> float:
        return self._unsigned("ClockInfo", _MEMORY) * 1e6

    def celsius(self) -> float:
        return self._unsigned("Temperature", _CORE)

    def _unsigned(self, what: str, *arguments: int) -> float:
        """A figure; 0 where the card does not give it."""
        value = ctypes.c_uint()
        return float(value.value) if self._read(what, value, *arguments) else 0.0

    def _read(self, what: str, value: Any, *arguments: int) -> bool:
        if self.refused:
            return False
        return self._call(f"nvmlDeviceGet{what}", self._card, *arguments, ctypes.byref(value))

    def _call(self, name: str, *arguments: Any) -> bool:
        status = getattr(self._library, name)(*arguments)
        if status and not self.refused and ("Init" in name or "Handle" in name or "Total" in name):
            self.refused = f"{name} answers with status {status}"
        return not status
