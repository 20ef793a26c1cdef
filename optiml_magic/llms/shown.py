"""A language model whose questions and answers a person can read along."""

from __future__ import annotations

from collections.abc import Callable

from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request
from optiml_magic.printable import printable


class Shown:
    """Writes all that is sent and what comes back; the key is no part of either."""

    def __init__(self, llm: LLM, write: Callable[[str], None]) -> None:
        self.name = llm.name
        self._llm = llm
        self._write = write

    def complete(self, request: Request) -> Reply | LlmFailure:
        """Ask once; raises as the model does."""
        self._part(f"to {self.name}, system", request.system)
        self._part(f"to {self.name}", request.user)
        outcome = self._llm.complete(request)
        said = outcome.text if isinstance(outcome, Reply) else f"({outcome.message})"
        self._part(f"from {self.name}", said)
        return outcome

    def _part(self, title: str, text: str) -> None:
        self._write(f"--- {title} ---\n{printable(text)}\n")
