"""One timing at a time on a card: what two processes measure there at once is of neither."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

_VISIBLE = "CUDA_VISIBLE_DEVICES"  # what cuda:0 means depends on it


@contextlib.contextmanager
def turn(device: str) -> Iterator[None]:
    """Wait until no other process of this user times on the device.

    The lock ends with the process that holds it, whichever way that goes. Windows has none.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    visible = "".join(c for c in os.environ.get(_VISIBLE, "") if c.isalnum())
    name = f"optiml-{os.getuid()}-{device.replace(':', '')}-{visible}.lock"
    with (Path(tempfile.gettempdir()) / name).open("ab") as file:
        with contextlib.suppress(OSError):  # a file system without locks
            fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield
