"""The language model among the proposers, where one was chosen."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from optiml_magic.llms.base import LLM
from optiml_magic.llms.choice import ModelChoice
from optiml_magic.llms.spending import Counted, Spending
from optiml_magic.model.evaluation import Step
from optiml_magic.model.thought import Wanted
from optiml_magic.proposers.drafts import one_line
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
    spending: Spending | None = None,
) -> Iterator[LlmProposer | None]:
    """The language model as proposer, open for one search; None where there is none.

    ``left`` are the seconds that the search has left, none once it is stopped; ``reference`` is the
    text of the task's. What it costs goes into ``spending``.
    """
    with opened(chosen, settings, left, spending) as llm:
        if llm is None:
            yield None
            return
        from optiml_magic.proposers.asking import Asker, Room
        from optiml_magic.proposers.brief import Contents
        from optiml_magic.proposers.llm import LlmProposer

        yield LlmProposer(
            Asker(llm, Room(settings.budget, left)),
            temperature=settings.llm_temperature,
            seed=settings.seed,
            max_tokens=settings.llm_tokens,
            contents=Contents(reference, settings.exact),
        )


@contextmanager
def opened(
    chosen: ModelChoice,
    settings: Settings,
    left: Callable[[], float] = lambda: math.inf,
    spending: Spending | None = None,
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
    from optiml_magic.llms.turns import InTurns

    account = spending or Spending()
    llm = OpenAILLM(
        chosen.name,
        settings.llm_url or None,
        effort=settings.llm_effort,
        timeout=settings.llm_seconds,
        # What the client tries again by itself, nobody would count.
        max_retries=0 if settings.llm_budget else 2,
        cancelled=lambda: left() <= 0,
        heard=account.tell,
    )
    account.open(one_line(f"llm:{llm.name}", 80), llm)
    asked: LLM = Counted(llm, account)
    if settings.llm_budget:
        asked = Metered(asked, settings.llm_budget)
    asked = InTurns(asked, settings.llm_parallel, lambda: left() <= 0)
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
        model.asker,
        wanted,
        most=settings.thoughts,
        budget=settings.budget,
        seed=settings.seed,
        max_tokens=settings.llm_tokens,
        late=lambda: elapsed() > settings.seconds / 2,
    )


def notes_of(
    model: LlmProposer | None,
    thinker: Thinker | None,
    spending: Spending,
    evaluated: Sequence[Step],
) -> tuple[str, ...]:
    """What the model cost, how good a judge it was, and every answer that could not be used."""
    if model is None:
        return ()
    from optiml_magic.proposers import prompt

    spent = replace(spending.now, thoughts=thinker.requests if thinker else 0)
    words = f"it was asked in words of the digest {prompt.digest()}"
    return (
        str(spent),
        words,
        *spending.notes,
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
