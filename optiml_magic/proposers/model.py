"""The language model among the proposers, where one was chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from optiml_magic.llms.base import LLM
from optiml_magic.llms.choice import ModelChoice
from optiml_magic.model.thought import Wanted
from optiml_magic.settings import Settings

if TYPE_CHECKING:
    from optiml_magic.proposers.llm import LlmProposer
    from optiml_magic.proposers.thinking import Thinker


@contextmanager
def language_model(chosen: ModelChoice, settings: Settings) -> Iterator[LlmProposer | None]:
    """The language model as proposer, open for one search; None where there is none."""
    with opened(chosen, settings) as llm:
        if llm is None:
            yield None
            return
        from optiml_magic.proposers.llm import LlmProposer

        yield LlmProposer(
            llm, seed=settings.seed, max_tokens=settings.llm_tokens, exact=settings.exact
        )


@contextmanager
def opened(chosen: ModelChoice, settings: Settings) -> Iterator[LLM | None]:
    """The language model itself; None where there is none."""
    if not chosen.name:
        yield None
        return
    from optiml_magic.llms.openai import OpenAILLM

    llm = OpenAILLM(chosen.name, settings.llm_url or None, timeout=settings.llm_seconds)
    try:
        yield llm
    finally:
        llm.close()


def thinker_of(
    model: LlmProposer | None,
    wanted: Wanted | None,
    settings: Settings,
    elapsed: Callable[[], float] = lambda: 0.0,
) -> Thinker | None:
    """What writes programs for the search to begin from; None without a model, a wish, or thoughts.

    It repairs none once half of the seconds are ``elapsed``.
    """
    if model is None or wanted is None or not settings.thoughts:
        return None
    from optiml_magic.proposers.thinking import Thinker

    return Thinker(
        model.llm,
        wanted,
        most=settings.thoughts,
        budget=settings.budget,
        seed=settings.seed,
        max_tokens=settings.llm_tokens,
        late=lambda: elapsed() > settings.seconds / 2,
    )


def spent_by(model: LlmProposer | None, thinker: Thinker | None = None) -> str:
    """What the model cost so far: its tokens, requests and seconds; empty where there is none."""
    if model is None:
        return ""
    usage, thought = model.usage, 0
    if thinker is not None:
        usage, thought = usage.and_then(thinker.usage), thinker.usage.requests
    requests = "1 request" if usage.requests == 1 else f"{usage.requests} requests"
    spent = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens in {requests}"
    of = f", {thought} of them for thoughts" if thought else ""
    return f"{model.name}: {spent}{of}, {usage.seconds:.0f} s"


def notes_of(model: LlmProposer | None, thinker: Thinker | None = None) -> tuple[str, ...]:
    """What the model cost, and every answer of it that could not be used."""
    if model is None:
        return ()
    return (spent_by(model, thinker), *(thinker.notes if thinker else ()), *model.notes)
