"""What a card says of its own state: read, and never changed.

Through NVML, else through nvidia-smi, which takes so long that it is asked only before and after a
timing; else not at all, with a reason. Sources: NVML API Reference, "nvmlClocksEventReasons";
``nvidia-smi --help-query-gpu``.
"""

from __future__ import annotations

import shutil
import subprocess

from optiml_magic.devices.nvml import Nvml
from optiml_magic.model.condition import Condition

# NVML's bits of what keeps a clock below its highest. An idle card (bit 0) is not held back by
# anything, and clocks that somebody has set (bit 1) or a display asks for (bit 8) are its usual.
_LIMITS = {
    0x004: "the power limit",
    0x008: "a slowdown by the hardware",
    0x010: "the clocks of a group of cards",
    0x020: "heat, by the driver",
    0x040: "heat, by the hardware",
    0x080: "the power supply",
    0x200: "a limit of the board",
    0x400: "reliability voltage",
}
_FIELDS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
# The name since driver 535, then the older one.
_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
_SECONDS = 10.0


class Telemetry:
    """One card, by the bus id that CUDA gives: an index may mean another card to NVML."""

    def __init__(self, bus: str) -> None:
        self._bus = bus
        self._nvml = Nvml(bus)
        self._tool = "" if self._nvml.is_open else shutil.which("nvidia-smi") or ""
        found = self._nvml.is_open or self._tool
        self.absent = "" if found else f"{self._nvml.refused}, and there is no nvidia-smi"

    def read(self) -> Condition | None:
        """The state now; None where it is not to be had, and ``absent`` says why."""
        if self._nvml.is_open:
            return self._read_nvml()
        return self._read_tool() if self._tool else None

    def sm_clock(self) -> int:
        """MHz, where it costs next to nothing to ask; else 0."""
        return self._nvml.sm_clock() or 0

    def _read_nvml(self) -> Condition | None:
        nvml = self._nvml
        sm, memory, reasons = nvml.sm_clock(), nvml.memory_clock(), nvml.reasons()
        celsius, watts = nvml.celsius(), nvml.watts()
        if sm is None or memory is None or reasons is None or celsius is None or watts is None:
            self.absent = nvml.refused
            return None
        return Condition(sm, memory, celsius, watts, limits(reasons))

    def _read_tool(self) -> Condition | None:
        for reasons in _REASONS:
            query = f"--query-gpu={','.join((*_FIELDS, reasons))}"
            command = [self._tool, query, "--format=csv,noheader,nounits", "-i", self._bus]
            try:
                done = subprocess.run(  # noqa: S603  # the driver's own tool
                    command, capture_output=True, text=True, check=True, timeout=_SECONDS
                )
                found = parsed(done.stdout)
            except (OSError, subprocess.SubprocessError, ValueError) as refused:
                self.absent = f"nvidia-smi: {refused}"
            else:
                self.absent = ""
                return found
        self._tool = ""  # it is not asked again, since each time costs
        return None


def limits(bits: int) -> tuple[str, ...]:
    """What NVML's bits of clock event reasons say holds the clocks back."""
    return tuple(name for bit, name in _LIMITS.items() if bits & bit)


def parsed(line: str) -> Condition:
    """A line of ``nvidia-smi --query-gpu``; ValueError where a field is not to be had."""
    fields = [field.strip() for field in line.strip().split(",")]
    if len(fields) != len(_FIELDS) + 1:
        raise ValueError(f"{len(fields)} fields in {line.strip()!r}")
    sm, memory, temperature, power, reasons = fields
    found = limits(int(reasons, 16))
    return Condition(int(sm), int(memory), int(temperature), float(power), found)
