"""A language model that may be asked for so many tokens in all, questions and answers."""

from __future__ import annotations

from dataclasses import replace
from threading import Lock

from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request

_SHORTEST = 2  # characters that a token has at the least, over a whole question; ours
_LEAST = 256  # tokens without which an answer is not worth a request; ours


class Metered:
    """Refuses a request that could go beyond the limit, and shortens the answer of the last.

    What an endpoint does not count costs what it may cost at most, so the limit holds there too.
    Several threads share it.
    """

    def __init__(self, llm: LLM, tokens: int) -> None:
        self.name = llm.name
        self._llm = llm
        self._tokens = tokens
        self._left = tokens
        self._lock = Lock()

    def complete(self, request: Request) -> Reply | LlmFailure:
        """Ask once, or say that the tokens are spent; raises as the model does."""
        asked = (len(request.system) + len(request.user) + len(request.schema)) // _SHORTEST
        with self._lock:
            answer = min(request.max_tokens, self._left - asked)
            if answer < min(_LEAST, request.max_tokens):
                return LlmFailure("spent", f"the {self._tokens} tokens of this search are spent")
            self._left -= asked + answer
        spent = asked + answer
        try:
            outcome = self._llm.complete(replace(request, max_tokens=answer))
            counted = outcome.prompt_tokens + outcome.completion_tokens
            free = isinstance(outcome, LlmFailure) and outcome.kind != "timeout"
            if outcome.estimated:
                spent = max(counted, spent)
            elif counted or free:
                spent = counted
            return outcome
        finally:
            with self._lock:
                self._left += asked + answer - spent
