"""Which model a name means. ``auto`` says what it took and why; without a key it takes none."""

from __future__ import annotations

import os
from dataclasses import dataclass

from optiml_magic.llms.base import LlmFailure

PREFERRED = ("gpt-5-mini", "gpt-5", "gpt-4.1-mini", "gpt-4.1", "gpt-4o-mini", "gpt-4o")
"""What ``auto`` takes where an endpoint offers several, the first that is there. Our choice."""

_SECONDS = 10.0  # of silence, when asked for its models


@dataclass(frozen=True)
class ModelChoice:
    """A model's name at its endpoint, empty for none; ``reason`` is told to the user."""

    name: str
    reason: str


def choose(asked: str, base_url: str) -> ModelChoice:
    """The model for a name: ``none``, ``auto``, or as the endpoint calls it.

    ``auto`` wants a key or a base URL, asks the endpoint what it offers, and takes its only model
    or the first of ``PREFERRED``. An endpoint that does not answer, or offers none of them, is a
    reason to go on without one; a model that was asked for by name is not.
    """
    if asked == "none":
        return ModelChoice("", "none, as requested")
    if asked != "auto":
        return ModelChoice(asked, f"{asked}, as asked")
    base_url = base_url or os.environ.get("OPENAI_BASE_URL", "")
    if not base_url and not os.environ.get("OPENAI_API_KEY"):
        return ModelChoice("", "none: auto found neither OPENAI_API_KEY nor a base URL")
    from optiml_magic.llms.openai import OpenAILLM  # the client takes half a second to load

    endpoint = OpenAILLM("any", base_url or None, timeout=_SECONDS, max_retries=0)
    try:
        found = endpoint.offered()
    finally:
        endpoint.close()
    if isinstance(found, LlmFailure):
        return ModelChoice("", f"none: auto asked for models, and {found.message}")
    if len(found) == 1:
        return ModelChoice(found[0], f"{found[0]}: auto took the endpoint's only model")
    name = next((model for model in PREFERRED if model in found), "")
    if name:
        return ModelChoice(name, f"{name}: auto took it from the {len(found)} models on offer")
    some = ", ".join(found[:3]) or "nothing"
    return ModelChoice(
        "",
        f"none: auto knows none of the {len(found)} on offer ({some} ...); name one: --llm MODEL",
    )
