"""What a person may do to a search while it runs, from any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from optiml_magic.errors import UsageError
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.suggestion import HAND, Suggestion
from optiml_magic.timings import Timings

Check = Callable[[int | None, str], Suggestion | Refusal]
"""Whether a program can be an edit of a candidate, by its number; None: of the best so far."""
Keep = Callable[[Suggestion], None]
"""Writes an accepted suggestion down, before anybody acts on it."""
_CLOSED = Refusal(HAND, "no search takes suggestions now: it has not begun, or it is over")


class Controls:
    """Stop, pause, resume and suggest, from any thread; the search looks here between evaluations.

    A search that is stopped stays so. One that is paused finishes the evaluation in flight, then
    neither evaluates nor proposes until it is resumed or stopped. What is suggested meanwhile
    waits. One object serves one search.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._stopped = False
        self._paused = False
        self._check: Check | None = None
        self._keep: Keep = lambda _: None
        self._suggested: deque[Suggestion] = deque()

    @property
    def stopped(self) -> bool:
        """Whether the search is to end."""
        return self._stopped

    @property
    def paused(self) -> bool:
        """Whether it is to wait; not once it is stopped."""
        return self._paused and not self._stopped

    def stop(self) -> None:
        """End the search after the evaluation in flight, or at once where it is paused."""
        self._set(stopped=True)

    def pause(self) -> None:
        """Let it wait after the evaluation in flight; its seconds do not run on meanwhile."""
        self._set(paused=True)

    def resume(self) -> None:
        """Let it go on."""
        self._set(paused=False)

    def suggest(self, parent: int | None, program: str) -> Refusal | None:
        """Have a program evaluated next, as a child of a candidate; None: of the best so far.

        The refusal says why it is not taken; without one it is in the journal and will be
        evaluated, unless the search ends first.
        """
        check = self._check
        found = check(parent, program) if check else _CLOSED
        if isinstance(found, Refusal):
            return found
        with self._changed:
            if self._check is None:  # the search ended meanwhile
                return _CLOSED
            self._keep(found)
            self._suggested.append(found)
        return None

    def require(self, parent: int | None, program: str) -> None:
        """``suggest``; raises UsageError where the program is not taken."""
        refused = self.suggest(parent, program)
        if refused is not None:
            raise UsageError(
                f"the program was not taken: {refused.reason}",
                fix="give a whole program, as an edit of a candidate that was evaluated",
                line=refused.line or None,
            )

    def take(self) -> Suggestion | None:
        """The oldest suggestion that nobody took yet: for the search."""
        with self._changed:
            return self._suggested.popleft() if self._suggested else None

    def goes_on(self, timings: Timings) -> bool:
        """Whether it is not stopped; while it is paused this waits, in the stage ``paused``."""
        if self.paused:
            with timings.stage("paused"), self._changed:
                self._changed.wait_for(lambda: not self.paused)
        return not self._stopped

    @contextmanager
    def accepting(self, check: Check, keep: Keep) -> Iterator[None]:
        """Take suggestions inside, each checked and then kept."""
        self._check, self._keep = check, keep
        try:
            yield
        finally:
            with self._changed:
                self._check = None

    def _set(self, *, stopped: bool = False, paused: bool | None = None) -> None:
        with self._changed:
            self._stopped |= stopped
            self._paused = self._paused if paused is None else paused
            self._changed.notify_all()
