"""A language model that is asked by so many at once at the most; others wait for their turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from threading import BoundedSemaphore

from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request

_LOOK = 0.1  # seconds between two looks at whether a request was cancelled


class InTurns:
    """Lets ``most`` requests through at once. The seconds of one run while it waits, too."""

    def __init__(self, llm: LLM, most: int, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.name = llm.name
        self._llm = llm
        self._most = most
        self._cancelled = cancelled
        self._turns = BoundedSemaphore(most)

    def complete(self, request: Request) -> Reply | LlmFailure:
        """Ask once, when it is its turn; raises as the model does."""
        began = time.monotonic()
        while not self._turns.acquire(timeout=max(0.0, min(_LOOK, self._left(request, began)))):
            waited = time.monotonic() - began
            if self._left(request, began) <= 0 or self._cancelled():
                others = "another request" if self._most == 1 else f"{self._most} other requests"
                why = f"waited {waited:.2g} s for {others} to end, and was not sent"
                return LlmFailure("timeout", why, seconds=waited)
        try:
            return self._llm.complete(replace(request, seconds=self._left(request, began)))
        finally:
            self._turns.release()

    def _left(self, request: Request, began: float) -> float:
        return request.seconds - (time.monotonic() - began)
