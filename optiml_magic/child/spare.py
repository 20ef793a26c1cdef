"""Children that wait for their next owner: to start one takes longer than most requests.

At most one of a module waits, for half a minute. It has forgotten its last owner, and goes to one
who would start it with the same arguments, interpreter, import path and environment. What was
killed, interrupted or had a defect never waits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from optiml_magic.child import ahead, frames
from optiml_magic.child.process import Child, Start

_IDLE_SECONDS = 30.0
_RESET_SECONDS = 2.0
_END_SECONDS = 1.0


@dataclass(frozen=True)
class _Waiting:
    child: Child
    since: float  # of time.monotonic


class Spares:
    """The children of this process that wait; of a forked process none."""

    def __init__(self) -> None:
        # A finalizer may come here in the middle of either method, in the same thread.
        self._lock = threading.RLock()
        self._waiting: dict[str, _Waiting] = {}  # by module
        self._timer: threading.Timer | None = None
        self._inherited: list[_Waiting] = []

    def take(self, module: str, arguments: Sequence[str], kinds: frames.Kinds) -> Child:
        """A child that waited, else a new one."""
        wanted = Start.now(module, arguments)
        with self._lock:
            waiting = self._waiting.get(module)
            if waiting is not None and waiting.child.start == wanted:
                del self._waiting[module]
            else:
                waiting = None
        # Once more: what it may take depends on what is free now, and it may have died meanwhile.
        if waiting is not None and not waiting.child.reset(_RESET_SECONDS):
            waiting.child.close(_END_SECONDS)
            waiting = None
        return waiting.child if waiting is not None else ahead.child(module, arguments, kinds)

    def waits(self, module: str) -> bool:
        """Whether a child of that module waits, which may fit."""
        with self._lock:
            return module in self._waiting

    def keep(self, child: Child, seconds: float) -> None:
        """Let a child wait, or end it as ``Child.close`` does where nobody else may have it."""
        if not child.reset(_RESET_SECONDS):
            child.close(seconds)
            return
        with self._lock:
            before = self._waiting.get(child.start.module)
            self._waiting[child.start.module] = _Waiting(child, time.monotonic())
            self._watch(_IDLE_SECONDS)
        if before is not None:
            before.child.close(_END_SECONDS)

    def end(self) -> None:
        """End all that wait."""
        with self._lock:
            ended = list(self._waiting.values())
            self._waiting.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
        for waiting in ended:
            waiting.child.close(_END_SECONDS)

    def _watch(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = threading.Timer(seconds, self._sweep)
            self._timer.daemon = True
            self._timer.start()

    def _sweep(self) -> None:
        with self._lock:
            self._timer = None
            now = time.monotonic()
            left = {m: w.since + _IDLE_SECONDS - now for m, w in self._waiting.items()}
            ended = [self._waiting.pop(module) for module, over in left.items() if over <= 0]
            if self._waiting:
                self._watch(min(over for over in left.values() if over > 0))
        for waiting in ended:
            waiting.child.close(_END_SECONDS)

    def forget(self) -> None:
        """In a forked process: threads and children stayed with the parent, as did a held lock.

        What waited there is held on to, since its threads are gone with the locks of its pipes.
        """
        self._lock = threading.RLock()
        self._timer = None
        self._inherited += self._waiting.values()
        self._waiting.clear()


SPARES = Spares()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=SPARES.forget)
