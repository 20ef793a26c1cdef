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

    One with neither is a plan. ``span`` quotes the lines that it is about, ``answers`` names the
    tool whose finding it attacks, ``arithmetic`` what arithmetic it changes. What else a model says
    of it is passed over.
    """

    title: str = ""
    rationale: str = ""
    span: str | None = None
    hypothesis: Expectation | None = None
    answers: str | None = None
    arithmetic: list[str] | None = None
    edits: list[Replacement] | None = None
    program: str | None = None

    @property
    def is_plan(self) -> bool:
        """Whether its code is still to be written."""
        return not self.edits and not self.program and bool(self.title.strip())

    def written(self, by: Draft) -> Draft:
        """This plan with the code of the draft that it led to."""
        told = self.arithmetic if by.arithmetic is None else by.arithmetic
        code = {"edits": by.edits, "program": by.program, "arithmetic": told}
        return self.model_copy(update=code)

    @property
    def said(self) -> str:
        """It as JSON, without what it leaves out."""
        return json.dumps(self.model_dump(exclude_none=True))


class Answer(BaseModel):
    """``waiting`` are numbers of ideas that others had and that the model would try, best first."""

    proposals: list[Draft]
    waiting: list[int] | None = None


@cache
def schema() -> str:
    """The JSON schema of an answer, in the strict form that OpenAI's endpoints ask for."""
    return strict_schema(Answer)


@dataclass(frozen=True)
class Fault:
    """What a model said that cannot be used, and why not."""

    said: str
    why: str


@dataclass(frozen=True)
class Said:
    """What can be read of a reply: drafts, the order of what waits, and what is wrong with it."""

    drafts: tuple[Draft, ...] = ()
    waiting: tuple[int, ...] = ()
    faults: tuple[Fault, ...] = ()


def read(text: str) -> Said:
    """A reply without trust.

    Never raises: any text gives drafts, faults or both; an empty list of proposals gives neither.
    """
    found = json_object(text, "proposals", alone=("edits", "program"))
    if isinstance(found, str):
        return Said(faults=(Fault(text, found),))
    drafts, faults = _drafts(found.get("proposals", [found]))
    waiting = found.get("waiting")
    numbers = waiting if isinstance(waiting, list) else []
    return Said(
        tuple(drafts),
        tuple(one for one in numbers if isinstance(one, int) and not isinstance(one, bool)),
        tuple(faults),
    )


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
