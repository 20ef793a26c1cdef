"""ncu around a device host, which can be started before it is needed."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

from optiml_magic.devices.hosted import HostedDevice

SECONDS = 180.0  # of one request to a host that ncu wraps


class NcuProcess:
    """One process of ncu around a device host, with the files that it writes."""

    def __init__(self, device: str, tool: str, arguments: Sequence[str]) -> None:
        self.arguments = tuple(arguments)
        self._folder = tempfile.TemporaryDirectory(prefix="optiml-ncu-")
        self.report = Path(self._folder.name, "report.ncu-rep")
        self.log = Path(self._folder.name, "ncu.log")
        out = str(self.report.with_suffix(""))
        prefix = (
            tool, "--profile-from-start", "off", "--clock-control", "none", *arguments,
            "--log-file", str(self.log), "--force-overwrite", "-o", out,
        )  # fmt: skip
        self.host = HostedDevice(device, seconds=SECONDS, prefix=prefix)

    def start(self) -> None:
        """Let it start beside whatever is done now: that takes longer than a batch of counts."""
        self.host.start()

    def close(self, *, seconds: float = 60.0) -> None:
        """End it, by force after so many seconds, and remove its files."""
        self.host.close(seconds=seconds)
        self._folder.cleanup()
