"""A language model that says what it was told to: for tests, and to replay a conversation."""

from __future__ import annotations

from collections.abc import Iterable

from optiml_magic.llms.base import LlmFailure, Reply, Request


class ScriptedLLM:
    """Answers in order, whatever is asked; ``requests`` holds every question so far."""

    def __init__(
        self, replies: Iterable[str | Reply | LlmFailure], *, name: str = "scripted"
    ) -> None:
        self.name = name
        self.requests: list[Request] = []
        self._replies = iter(replies)

    def complete(self, request: Request) -> Reply | LlmFailure:
        self.requests.append(request)
        reply = next(self._replies, None)
        if reply is None:
            return LlmFailure(
                "exhausted", f"the script ends after {len(self.requests) - 1} replies"
            )
        return Reply(reply, model=self.name) if isinstance(reply, str) else reply
