"""The language model among the proposers, where one was chosen."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from optiml_magic.llms.base import LLM
from optiml_magic.llms.choice import ModelChoice
from optiml_magic.model.evaluation import Step
from optiml_magic.model.thought import Wanted
from optiml_magic.settings import Settings

if TYPE_CHECKING:
    from optiml_magic.proposers.llm import LlmProposer
    from optiml_magic.proposers.thinking import Thinker


@contextmanager
def language_model(
    chosen: ModelChoice,
    settings: Settings,
    left: Callable[[], float] = lambda: math.inf,
    reference: str = "",
) -> Iterator[LlmProposer | None]:
    """The language model as proposer, open for one search; None where there is none.

    ``left`` are the seconds that the search has left, none once it is stopped; ``reference`` is the
    text of the task's.
    """
    with opened(chosen, settings, left) as llm:
        if llm is None:
            yield None
            return
        from optiml_magic.proposers.asking import Room
        from optiml_magic.proposers.brief import Contents
        from optiml_magic.proposers.llm import LlmProposer

        yield LlmProposer(
            llm,
            seed=settings.seed,
            max_tokens=settings.llm_tokens,
            contents=Contents(reference, settings.exact),
            room=Room(settings.budget, left),
        )


@contextmanager
def opened(
    chosen: ModelChoice, settings: Settings, left: Callable[[], float] = lambda: math.inf
) -> Iterator[LLM | None]:
    """The language model itself; None where there is none.

    A request ends when nothing is ``left`` any more.
    """
    if not chosen.name:
        yield None
        return
    from optiml_magic.llms.metered import Metered
    from optiml_magic.llms.openai import OpenAILLM
    from optiml_magic.llms.shown import Shown

    llm = OpenAILLM(
        chosen.name,
        settings.llm_url or None,
        timeout=settings.llm_seconds,
        # What the client tries again by itself, nobody would count.
        max_retries=0 if settings.llm_budget else 2,
        cancelled=lambda: left() <= 0,
    )
    asked: LLM = Metered(llm, settings.llm_budget) if settings.llm_budget else llm
    if settings.show_prompts:
        asked = Shown(asked, lambda text: print(text, file=sys.stderr))  # noqa: T201
    try:
        yield asked
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


def spent_by(model: LlmProposer | None, thinker: Thinker | None = None, prices: str = "") -> str:
    """What the model cost so far: its tokens, requests and seconds; empty where there is none.

    ``prices`` are those of a million tokens asked and answered, such as ``0.25,2.00``: then also
    what that comes to.
    """
    if model is None:
        return ""
    usage, thought = model.usage, 0
    if thinker is not None:
        usage, thought = usage.and_then(thinker.usage), thinker.usage.requests
    requests = "1 request" if usage.requests == 1 else f"{usage.requests} requests"
    spent = f"{usage.prompt_tokens} + {usage.completion_tokens} tokens in {requests}"
    of = f", {thought} of them for thoughts" if thought else ""
    money = ""
    if prices:
        asked, answered = (float(price) / 1e6 for price in prices.split(","))
        cost = asked * usage.prompt_tokens + answered * usage.completion_tokens
        money = f", {cost:.2g} at {prices} a million"
    return f"{model.name}: {spent}{of}, {usage.seconds:.0f} s{money}"


def notes_of(
    model: LlmProposer | None,
    thinker: Thinker | None = None,
    prices: str = "",
    evaluated: Sequence[Step] = (),
) -> tuple[str, ...]:
    """What the model cost, how good a judge it was, and every answer that could not be used."""
    if model is None:
        return ()
    from optiml_magic.proposers import prompt

    words = f"it was asked in words of the digest {prompt.digest()}"
    return (
        spent_by(model, thinker, prices),
        words,
        *_as_judge(model, evaluated),
        *(thinker.notes if thinker else ()),
        *model.notes,
    )


def _as_judge(model: LlmProposer, evaluated: Sequence[Step]) -> Iterator[str]:
    """How its order of ideas compares with what was measured."""
    found = model.agreement(evaluated)
    if found.pairs:
        rest = ": not followed any more" if found.is_below_chance else ""
        yield f"{model.name}: its order of ideas has {found}{rest}"
