"""The language model among the proposers, where one was chosen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from optiml_magic.llms.choice import ModelChoice
from optiml_magic.settings import Settings

if TYPE_CHECKING:
    from optiml_magic.proposers.llm import LlmProposer


@contextmanager
def language_model(chosen: ModelChoice, settings: Settings) -> Iterator[LlmProposer | None]:
    """The language model as proposer, open for one search; None where there is none."""
    if not chosen.name:
        yield None
        return
    from optiml_magic.llms.openai import OpenAILLM
    from optiml_magic.proposers.llm import LlmProposer

    llm = OpenAILLM(chosen.name, settings.llm_url or None, timeout=settings.llm_seconds)
    try:
        yield LlmProposer(
            llm, seed=settings.seed, max_tokens=settings.llm_tokens, exact=settings.exact
        )
    finally:
        llm.close()


def notes_of(model: LlmProposer | None) -> tuple[str, ...]:
    """What the model cost, and every answer of it that could not be used."""
    if model is None:
        return ()
    usage = model.usage
    spent = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens in {usage.requests} requests"
    return (f"{model.name}: {spent}, {usage.seconds:.0f} s", *model.notes)
