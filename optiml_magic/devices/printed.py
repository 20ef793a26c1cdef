"""What kernels print: the standard output of the device host, kept in memory, bounded."""

from __future__ import annotations

import ctypes
import os
import tempfile

_MOST = 4000  # characters that reach the user


class Printed:
    """Takes the place of this process's standard output, which must be free for it.

    A run of CUDA prints at most its buffer of 1 MB (CUDA C++ Guide, "Formatted Output"), so what
    lies here between two requests is bounded as well.
    """

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  # lives as long as the process
        if hasattr(os, "memfd_create"):
            self._file.close()
            self._file = os.fdopen(os.memfd_create("optiml-printed"), "w+b", buffering=0)
        os.dup2(self._file.fileno(), 1)
        self._library = ctypes.CDLL(None) if os.name == "posix" else None

    def take(self) -> str:
        """What was printed since the last time, up to a cap, with a word on what is left out."""
        if self._library is not None:
            self._library.fflush(None)
        place = self._file.fileno()
        size = os.lseek(place, 0, os.SEEK_END)
        if not size:
            return ""
        os.lseek(place, 0, os.SEEK_SET)
        text = os.read(place, _MOST).decode(errors="replace")
        os.ftruncate(place, 0)
        os.lseek(place, 0, os.SEEK_SET)
        return text if size <= _MOST else f"{text}\n... and {size - _MOST} bytes more"
