"""What a model is asked to answer with, and how its answer is read."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

SCHEMA_NAME = "kernel_proposals"
_MOST_STARTS = 16  # places where an answer is looked for
_OPENING = re.compile(r'\{\s*"proposals"\s*:')
_DECODER = json.JSONDecoder(strict=False)  # models put bare line breaks into strings


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
    return json.dumps(_strict(Answer.model_json_schema()))


def read(text: str) -> tuple[list[Draft], list[str]]:
    """The drafts in a reply that can be read, and what is wrong with the others.

    Never raises: any text gives drafts, complaints or both; an empty list of proposals gives
    neither.
    """
    complaint = "there is no JSON object in the reply"
    for at in _starts(text):
        try:
            found, _ = _DECODER.raw_decode(text, at)
        except RecursionError:
            complaint = "the JSON is nested too deeply"
        except ValueError as broken:
            complaint = f"the JSON is broken: {broken}"[:200]
        else:
            return _drafts(found)
    return [], [complaint]


def _drafts(found: dict[str, Any]) -> tuple[list[Draft], list[str]]:
    if "proposals" not in found:
        return [], ["the JSON object has no `proposals`"]
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
            complaints.append(f"proposal {number}: {_described(unfit)}")
    return drafts, complaints


def _described(unfit: ValidationError) -> str:
    first = unfit.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:80]
    return f"{f'`{place}`: ' if place else ''}{first['msg']}"[:300]


def _starts(text: str) -> list[int]:
    """Where the answer may begin, the likeliest place first: bare, fenced, behind other words.

    The last object that opens as an answer does is meant, since models think aloud before it.
    """
    likely = [match.start() for match in _OPENING.finditer(text)]
    return likely[: -_MOST_STARTS - 1 : -1] or [at for at in [text.find("{")] if at >= 0]


def _strict(node: Any) -> Any:
    """Every property required, no default: what may be missing may be null instead."""
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    strict = {name: _strict(value) for name, value in node.items()}
    if strict.get("type") == "object":
        strict["required"] = list(strict["properties"])
        for value in strict["properties"].values():
            value.pop("default", None)
    return strict
