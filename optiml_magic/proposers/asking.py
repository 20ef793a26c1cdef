"""Requests to a model that a search can live with: tried again, and given up in time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from threading import Lock

from optiml_magic.errors import MachineError, UsageError
from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request
from optiml_magic.proposers import prompt
from optiml_magic.proposers.drafts import one_line

_MOST_FAILURES = 3  # in a row, then the model is not asked again: each may take minutes
_BACKOFF = 1.0  # seconds after a first failure, then four times as long each time
_PART = 2  # of the seconds that are left a request is for

Note = Callable[[str], None]
"""Called with what a person should know."""


@dataclass(frozen=True)
class Room:
    """What a search has for its model: ``evaluations`` in all, seconds that are ``left`` to it.

    ``most`` edits are asked for at a time, and ``pause`` waits so many seconds.
    """

    evaluations: int | None = None
    left: Callable[[], float] = lambda: math.inf
    most: int = 4
    pause: Callable[[float], None] = time.sleep


ENDLESS = Room()


class Asker:
    """Asks one model for one search; several threads may ask at once.

    A failure of the endpoint is tried again after a while. The model is ``off`` after three in a
    row, and once an endpoint that had answered refuses the key or the model.
    """

    def __init__(self, llm: LLM, room: Room = ENDLESS) -> None:
        self.name = one_line(f"llm:{llm.name}", 80)
        self.room = room
        self.off = False
        self._llm = llm
        self._answered = False
        self._failures = 0
        self._lock = Lock()

    def reply(self, request: Request, note: Note) -> Reply | None:
        """What the model says; None where nothing is to be had of it now.

        Raises:
            MachineError, UsageError: as ``LLM.complete``, where no request was answered before.
        """
        longest = 2 * request.max_tokens
        while not self.off:
            try:
                outcome = self._llm.complete(replace(request, seconds=self.room.left() / _PART))
            except (MachineError, UsageError) as refused:
                if not self._answered:
                    raise
                self.end(refused.message, note)
                return None
            failures = self._counted(outcome)
            if isinstance(outcome, Reply):
                return outcome
            note(outcome.message)
            if outcome.kind == "truncated" and request.max_tokens < longest:
                shorter = f"{request.user}\n\n{prompt.text('shorten')}"
                request = replace(request, max_tokens=longest, user=shorter)
            elif outcome.kind == "spent":
                self.end("no more is to be spent", note)
            elif failures >= _MOST_FAILURES:
                self.end(f"{_MOST_FAILURES} failures in a row", note)
            elif not outcome.may_pass:
                return None
            else:
                wait = _BACKOFF * 4.0 ** (failures - 1)
                self.room.pause(min(wait, max(0.0, self.room.left() / _PART)))
        return None

    def end(self, why: str, note: Note) -> None:
        """The model's part in the search is over."""
        with self._lock:
            again, self.off = self.off, True
        if not again:
            note(f"{why}: the model is not asked again")

    def _counted(self, outcome: Reply | LlmFailure) -> int:
        """How many requests in a row failed, with this one; a cut reply is none of them."""
        with self._lock:
            if isinstance(outcome, Reply):
                self._answered, self._failures = True, 0
            elif outcome.kind != "truncated":
                self._failures += 1
            return self._failures
