"""What a language model cost a search so far, shown while an answer is still on its way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Protocol

from optiml_magic.llms.base import LLM, LlmFailure, Reply, Request


@dataclass(frozen=True)
class UnderWay:
    """Requests that are not answered yet, and the tokens of theirs that are known or guessed."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False


class Endpoint(Protocol):
    """Where a model is asked."""

    @property
    def under_way(self) -> UnderWay:
        """What it is asked for now."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """The options that it does not take, by their names in a request."""


@dataclass(frozen=True)
class Spent:
    """What was asked for so far, failures and what is ``under_way`` included.

    ``prices`` are those of a million tokens asked and answered, such as ``0.25,2.00``; "" for none.
    """

    name: str
    prices: str = ""
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0
    estimated: bool = False
    under_way: int = 0
    thoughts: int = 0  # requests for these

    @property
    def cost(self) -> float | None:
        """In the money of the prices."""
        if not self.prices:
            return None
        asked, answered = (float(price) / 1e6 for price in self.prices.split(","))
        return asked * self.prompt_tokens + answered * self.completion_tokens

    @property
    def brief(self) -> str:
        """For a line that has room for little; "" before anything was asked."""
        if not self.requests:
            return ""
        about = "about " if self.estimated else ""
        cost = "" if self.cost is None else f", cost {self.cost:.2g}"
        return f"{about}{self.prompt_tokens + self.completion_tokens} tokens{cost}"

    def __str__(self) -> str:
        requests = "1 request" if self.requests == 1 else f"{self.requests} requests"
        about = "about " if self.estimated else ""
        spent = f"{about}{self.prompt_tokens} + {self.completion_tokens} tokens in {requests}"
        of = f", {self.thoughts} of them for thoughts" if self.thoughts else ""
        now = f", {self.under_way} under way" if self.under_way else ""
        money = "" if self.cost is None else f", {self.cost:.2g} at {self.prices} a million"
        return f"{self.name}: {spent}{of}{now}, {self.seconds:.0f} s{money}"


class Spending:
    """The account of one search. ``told`` is called at every change, from any thread."""

    def __init__(self, prices: str = "", told: Callable[[Spent], None] = lambda _: None) -> None:
        self._prices = prices
        self._told = told
        self._lock = Lock()
        self._whole = UnderWay()
        self._seconds = 0.0
        self._name = ""
        self._endpoint: Endpoint | None = None

    def open(self, name: str, endpoint: Endpoint) -> None:
        """Of this model from now on, as it is called and where it is asked."""
        self._name, self._endpoint = name, endpoint

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person asked for and did not get."""
        if self._endpoint is None or "reasoning_effort" not in self._endpoint.left_out:
            return ()
        return (f"{self._name}: the endpoint takes no effort of reasoning, so none was asked for",)

    def add(self, outcome: Reply | LlmFailure) -> None:
        """One request is over."""
        with self._lock:
            whole = self._whole
            self._whole = UnderWay(
                whole.requests + 1,
                whole.prompt_tokens + outcome.prompt_tokens,
                whole.completion_tokens + outcome.completion_tokens,
                whole.estimated or outcome.estimated,
            )
            self._seconds += outcome.seconds
        self.tell()

    def tell(self) -> None:
        """What is known now, to whoever watches."""
        self._told(self.now)

    @property
    def now(self) -> Spent:
        """So far."""
        with self._lock:
            whole, seconds = self._whole, self._seconds
            now = self._endpoint.under_way if self._endpoint else UnderWay()
        return Spent(
            self._name,
            self._prices,
            whole.requests + now.requests,
            whole.prompt_tokens + now.prompt_tokens,
            whole.completion_tokens + now.completion_tokens,
            seconds,
            whole.estimated or now.estimated,
            now.requests,
        )


class Counted:
    """Enters all that is asked into an account."""

    def __init__(self, llm: LLM, spending: Spending) -> None:
        self.name = llm.name
        self._llm = llm
        self._spending = spending

    def complete(self, request: Request) -> Reply | LlmFailure:
        """Ask once; raises as the model does."""
        outcome = self._llm.complete(request)
        self._spending.add(outcome)
        return outcome
