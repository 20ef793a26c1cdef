"""What a model is asked to answer with, and how its answer is read."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from optiml_magic.proposers.replies import described, json_object, strict_schema

SCHEMA_NAME = "kernel_proposals"


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Replacement(_Model):
    """One edit; ``find`` occurs exactly once in the parent's text."""

    find: str
    replace: str


class Expectation(_Model):
    metric: str
    direction: Literal["lower", "higher"]
    because: str
    factor: float | None = None  # how many times lower or higher


class Draft(_Model):
    """One proposal as the model put it: ``edits``, or else the whole ``program``.

    ``answers`` names the tool whose finding it attacks, ``arithmetic`` what arithmetic it changes.
    """

    title: str
    rationale: str
    hypothesis: Expectation
    answers: str | None = None
    arithmetic: list[str] | None = None
    edits: list[Replacement] | None = None
    program: str | None = None


class Answer(_Model):
    proposals: list[Draft]


@cache
def schema() -> str:
    """The JSON schema of an answer, in the strict form that OpenAI's endpoints ask for."""
    return strict_schema(Answer)


def read(text: str) -> tuple[list[Draft], list[str]]:
    """The drafts in a reply that can be read, and what is wrong with the others.

    Never raises: any text gives drafts, complaints or both; an empty list of proposals gives
    neither.
    """
    found = json_object(text, "proposals")
    return ([], [found]) if isinstance(found, str) else _drafts(found)


def _drafts(found: dict[str, Any]) -> tuple[list[Draft], list[str]]:
    others = [name for name in found if name != "proposals"]
    if others:
        return [], [f"beside `proposals` there is {', '.join(map(repr, others[:5]))[:200]}"]
    if not isinstance(found["proposals"], list):
        return [], ["`proposals` is not a list"]
    drafts: list[Draft] = []
    complaints: list[str] = []
    for number, raw in enumerate(found["proposals"], 1):
        try:
            drafts.append(Draft.model_validate(raw))
        except ValidationError as unfit:
            complaints.append(f"proposal {number}: {described(unfit)}")
    return drafts, complaints
