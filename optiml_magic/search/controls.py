"""What a person may do to a search while it runs, from any thread."""

from __future__ import annotations

import threading
from collections import deque

from optiml_magic.errors import UsageError
from optiml_magic.model.refusal import Refusal


class Controls:
    """Stop, pause, resume and suggest, from any thread; the search looks here between evaluations.

    One object serves one search.
    """

    def __init__(self) -> None:
        self._stopped = threading.Event()
        self._paused = threading.Event()
        self._suggested: deque[tuple[int | None, str]] = deque()

    @property
    def stopped(self) -> bool:
        """Whether the search is to end."""
        return self._stopped.is_set()

    @property
    def paused(self) -> bool:
        """Whether it is to wait; not once it is stopped."""
        return self._paused.is_set() and not self.stopped

    def stop(self) -> None:
        """End the search after the evaluation in flight."""
        self._stopped.set()

    def pause(self) -> None:
        """Let it wait after the evaluation in flight."""
        self._paused.set()

    def resume(self) -> None:
        """Let it go on."""
        self._paused.clear()

    def suggest(self, parent: int | None, program: str) -> Refusal | None:
        """Have a program evaluated next, as a child of a candidate; a refusal says why not."""
        self._suggested.append((parent, program))
        return None

    def require(self, parent: int | None, program: str) -> None:
        """``suggest``; raises UsageError where the program is not taken."""
        refused = self.suggest(parent, program)
        if refused is not None:
            raise UsageError(str(refused), fix="change that, and suggest it again")

    def suggestions(self) -> list[tuple[int | None, str]]:
        """Those that nobody took yet, the oldest first; they are taken by this."""
        return [self._suggested.popleft() for _ in range(len(self._suggested))]
