"""Before a model that may cost money is asked for the first time: what it is sent, and whether to.

Only where nobody chose: ``auto`` by default, and an endpoint on another machine. What a user names
by ``--llm`` or ``OPTIML_LLM`` is asked without a word.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from optiml_magic.llms.choice import ModelChoice, choose
from optiml_magic.llms.places import is_here, shown
from optiml_magic.settings import Settings

HOW = "--llm auto, or OPTIML_LLM=auto, asks it without a question; --llm none asks nobody"
_AGREED: set[tuple[str, str]] = set()  # models and endpoints, in this process


def sent(chosen: ModelChoice, url: str | None) -> str:
    """What goes where, in a sentence."""
    return (
        f"{chosen.name} at {shown(url)} is sent the kernel, the text of its reference, shapes and "
        "findings, which may cost money"
    )


def agreed(
    settings: Settings,
    given: str | None,
    ask: Callable[[str], bool],
    choose_model: Callable[[str, str], ModelChoice] = choose,
) -> str:
    """The model's name for this command: that of ``settings``, or ``none`` where a user says so.

    ``given`` is the value of the flag, and ``ask`` puts a question to whoever is there.
    """
    url = settings.llm_url or os.environ.get("OPENAI_BASE_URL", "").strip() or None
    if settings.llm != "auto" or given or os.environ.get("OPTIML_LLM") or is_here(url):
        return settings.llm
    chosen = choose_model(settings.llm, settings.llm_url)
    about = chosen.name, shown(url) if chosen.name else ""
    if not chosen.name or about in _AGREED:
        return settings.llm
    if not ask(f"{sent(chosen, url)}. Ask it? [y/N] "):
        return "none"
    _AGREED.add(about)
    return settings.llm
