"""What a model is asked to answer with, and how its answer is read."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ValidationError

from optiml_magic.proposers.replies import described, json_object, strict_schema

SCHEMA_NAME = "kernel_proposals"


class Replacement(BaseModel):
    """One edit; ``find`` occurs exactly once in the parent's text."""

    find: str
    replace: str


class Expectation(BaseModel):
    metric: str
    direction: Literal["lower", "higher"]
    because: str = ""
    factor: float | None = None  # how many times lower or higher


class Draft(BaseModel):
    """One proposal as the model put it: ``edits``, or else the whole ``program``.

    ``answers`` names the tool whose finding it attacks, ``arithmetic`` what arithmetic it changes.
    What else a model says of it is passed over.
    """

    title: str = ""
    rationale: str = ""
    hypothesis: Expectation | None = None
    answers: str | None = None
    arithmetic: list[str] | None = None
    edits: list[Replacement] | None = None
    program: str | None = None

    @property
    def said(self) -> str:
        """It as JSON, without what it leaves out."""
        return json.dumps(self.model_dump(exclude_none=True))


class Answer(BaseModel):
    proposals: list[Draft]


@cache
def schema() -> str:
    """The JSON schema of an answer, in the strict form that OpenAI's endpoints ask for."""
    return strict_schema(Answer)


@dataclass(frozen=True)
class Fault:
    """What a model said that cannot be used, and why not."""

    said: str
    why: str


def read(text: str) -> tuple[list[Draft], list[Fault]]:
    """The drafts in a reply that can be read, and what is wrong with the others.

    Never raises: any text gives drafts, faults or both; an empty list of proposals gives neither.
    """
    found = json_object(text, "proposals", alone=("edits", "program"))
    if isinstance(found, str):
        return [], [Fault(text, found)]
    return _drafts(found.get("proposals", [found]))


def _drafts(proposals: Any) -> tuple[list[Draft], list[Fault]]:
    if not isinstance(proposals, list):
        return [], [Fault(json.dumps(proposals), "`proposals` is not a list")]
    drafts: list[Draft] = []
    faults: list[Fault] = []
    for number, raw in enumerate(proposals, 1):
        try:
            drafts.append(Draft.model_validate(raw))
        except ValidationError as unfit:
            faults.append(Fault(json.dumps(raw), f"proposal {number}: {described(unfit)}"))
    return drafts, faults
