"""What a process holds, read from /proc: children, descriptors, memory."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path


def children(parent: int) -> set[int]:
    """The processes whose parent it is, zombies included."""
    return {pid for pid in _all() if _stat(pid)[1:2] == [str(parent)]}


def session_of(pid: int) -> set[int]:
    """The processes of the session that ``pid`` leads; a zombie holds nothing and counts for none."""
    return {p for p in _all() if (s := _stat(p))[3:4] == [str(pid)] and s[0] != "Z"}


def runs(pid: int) -> bool:
    """Whether it is there, and no zombie."""
    return _stat(pid)[:1] not in ([], ["Z"])


def descriptors(pid: int) -> int:
    """How many files and pipes it has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


def resident(pid: int) -> int:
    """Bytes of memory that it has in use."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def shared_files() -> set[str]:
    """Names in /dev/shm."""
    return {path.name for path in Path("/dev/shm").glob("*")}


def gone(pids: Iterable[int], seconds: float = 20.0) -> bool:
    """Whether all of them end within ``seconds``."""
    pids = list(pids)
    return eventually(lambda: not any(map(runs, pids)), seconds)


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> bool:
    """Whether it comes to hold within ``seconds``."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _all() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").glob("[0-9]*")]


def _stat(pid: int) -> list[str]:
    """State, parent, group, session, ...; nothing for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []
