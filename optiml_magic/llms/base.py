"""The seam of the language models: one request in, one reply or one failure out."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol

FailureKind = Literal[
    "timeout",
    "unreachable",  # no connection, or it broke
    "rate_limited",  # still, after the client's own retries
    "server",  # 5xx, still, after the client's own retries
    "rejected",  # the endpoint will not take the request: too long, or not understood
    "refused",  # the model declined, or a filter did
    "truncated",  # the reply hit max_tokens
    "malformed",  # the endpoint's answer is not a chat completion, or an empty one
    "exhausted",  # a script has no more replies
    "spent",  # the tokens that a search may use
]


@dataclass(frozen=True)
class Request:
    """One question. ``schema`` is the JSON schema of the wanted reply, as text; "" for free text.

    ``schema_name`` may hold letters, digits, ``_`` and ``-``: endpoints ask for it. ``seconds`` are
    those that all of it may take, whatever is tried. ``effort`` is how much the model reasons, in
    the endpoint's word; "" for what the model was opened with.
    """

    system: str
    user: str
    schema_name: str = ""
    schema: str = ""
    temperature: float = 0.7
    seed: int = 0
    max_tokens: int = 8192
    seconds: float = math.inf
    effort: str = ""


@dataclass(frozen=True)
class Reply:
    """What the model said, as it said it: ``text`` may wrap the wanted JSON in other words.

    ``model`` is the name that the endpoint gave. Token counts are ``estimated`` from the characters
    where it gave none.
    """

    text: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    model: str = ""
    estimated: bool = False


@dataclass(frozen=True)
class LlmFailure:
    """No reply, for a reason that a search must live with. The tokens were spent all the same.

    They are ``estimated`` from what came of an answer, where the endpoint did not count them.
    """

    kind: FailureKind
    message: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    estimated: bool = False

    @property
    def may_pass(self) -> bool:
        """Whether the same request may be answered in a moment."""
        return self.kind in ("timeout", "unreachable", "rate_limited", "server", "malformed")


class LLM(Protocol):
    """A language model, which several threads may ask at once."""

    @property
    def name(self) -> str:
        """Of the model; stands beside each proposal that came from it."""

    def complete(self, request: Request) -> Reply | LlmFailure:
        """Ask once.

        Raises:
            MachineError: there is no key, or the endpoint does not accept it.
            UsageError: the endpoint does not know the model.
        """
