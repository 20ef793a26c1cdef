"""One timing at a time on a card: what two processes measure there at once is of neither."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

_LONGEST = 60.0  # seconds; whoever holds it for longer has been stopped, and not by its timing
_PAUSE = 0.01


@contextlib.contextmanager
def turn(device: str, longest: float = _LONGEST, *, shared: bool = False) -> Iterator[str]:
    """Wait until no other process of this user times on the device, for ``longest`` seconds.

    Nobody times while it is held. ``shared``: others may have it so at the same time, who do not
    time themselves.

    Gives why the turn may not be one's own alone, or nothing. The lock ends with the process that
    holds it.
    """
    with contextlib.ExitStack() as stack:
        try:
            crowded = _lock(stack.enter_context(_path(device).open("ab")), longest, shared)
        except OSError as refused:
            crowded = f"there is no lock to wait for: {refused}"
        yield crowded


def _path(device: str) -> Path:
    """One for each card, however this process calls it."""
    family, _, index = device.partition(":")
    seen = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    card = seen[int(index)] if index.isdecimal() and int(index) < len(seen) else ""
    name = "".join(c for c in f"{family}-{card or index}" if c.isalnum() or c == "-")
    user = os.getuid() if sys.platform != "win32" else ""
    return Path(tempfile.gettempdir()) / f"optiml-{user}-{name}.lock"


def _lock(file: IO[bytes], longest: float, shared: bool) -> str:
    if sys.platform == "win32":
        return "Windows has no such locks"
    import fcntl

    until, kind = time.monotonic() + longest, fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    while True:
        try:
            fcntl.flock(file.fileno(), kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return f"another process has held it for {longest:g} s"
            time.sleep(_PAUSE)
        else:
            return ""
