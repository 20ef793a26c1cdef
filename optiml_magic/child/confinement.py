"""What a child may take and see: memory, no core dumps, and files of a few folders alone.

Source: setrlimit(2), proc_pid_oom_score_adj(5), and the kernel's userspace-api/landlock.rst.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
from collections.abc import Iterable
from pathlib import Path

_SHARE = 0.8  # of the memory that is free when the child starts
_LEAST = 4 << 30  # bytes; an address space is larger than what is used of it

# System calls have these numbers on every architecture of Linux.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1  # a flag of the first
_BENEATH = 1  # a kind of rule
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
_RIGHTS = (1 << 13) - 1  # of the first version: execute, write, read, and all that makes or removes
_NO_NEW_PRIVILEGES = 38  # of prctl


def limit_memory(nbytes: int | None = None) -> None:
    """Bound the address space, so that an allocation fails here before the machine runs out."""
    if sys.platform == "win32":
        return
    import resource

    wanted = nbytes or max(_LEAST, int(_SHARE * available_memory()))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    with contextlib.suppress(ValueError, OSError):  # macOS takes none
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def be_expendable() -> None:
    """Die first where the machine runs out of memory, and leave no core dump."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", encoding="ascii")


def available_memory() -> int:
    """Bytes that can still be taken: of the machine, and of the container where there is one."""
    found = [32 << 30]
    with contextlib.suppress(OSError, ValueError, IndexError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        found.append(int(next(x for x in lines if x.startswith("MemAvailable")).split()[1]) << 10)
        group = Path("/sys/fs/cgroup")
        limit = (group / "memory.max").read_text(encoding="ascii").strip()
        if limit != "max":
            used = int((group / "memory.current").read_text(encoding="ascii"))
            found.append(int(limit) - used)
    return max(0, min(found[1:] or found))


def see_only(folders: Iterable[str | Path]) -> bool:
    """From now on this thread opens files to read beneath ``folders`` alone, and writes none.

    Threads and processes that it starts later inherit that. False where the kernel cannot do so:
    Landlock came with Linux 5.13, and some containers forbid it.
    """
    if sys.platform != "linux":
        return False
    library = ctypes.CDLL(None, use_errno=True)
    if library.syscall(_CREATE_RULESET, None, 0, _VERSION) < 1:
        return False
    handled = ctypes.c_uint64(_RIGHTS)
    ruleset = library.syscall(_CREATE_RULESET, ctypes.byref(handled), 8, 0)
    if ruleset < 0:
        return False
    try:
        for folder in folders:
            _allow(library, ruleset, folder)
        if library.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            return False
        return not library.syscall(_RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _allow(library: ctypes.CDLL, ruleset: int, folder: str | Path) -> None:
    try:
        place = os.open(folder, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return  # what does not exist needs no leave
    try:
        rights = _READ_FILE | _READ_DIR if Path(folder).is_dir() else _READ_FILE
        rule = _Rule(rights, place)
        library.syscall(_ADD_RULE, ruleset, _BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)
