"""JSON in a model's reply: the schema that is asked for, and reading it without trust."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

_MOST_STARTS = 16  # places where an answer is looked for
_DECODER = json.JSONDecoder(strict=False)  # models put bare line breaks into strings


def strict_schema(model: type[BaseModel]) -> str:
    """The JSON schema of a model, in the strict form that OpenAI's endpoints ask for."""
    return json.dumps(_strict(model.model_json_schema()))


def json_object(text: str, first: str, alone: Sequence[str] = ()) -> dict[str, Any] | str:
    """The object in a reply that has the key ``first``, or why there is none.

    Never raises. The last that is not empty is meant, since models think aloud before it. A bare
    list is taken for what ``first`` should hold, and so is an object with one of the keys that it
    may have ``alone``.
    """
    complaint, empty = "there is no JSON object in the reply", None
    for at in _starts(text, first):
        try:
            found, _ = _DECODER.raw_decode(text, at)
        except RecursionError:
            complaint = "the JSON is nested too deeply"
        except ValueError as broken:
            complaint = f"the JSON is broken: {broken}"[:200]
        else:
            if isinstance(found, list):
                found = {first: found}
            if found.get(first) or any(found.get(key) for key in alone):
                return dict(found)
            if first in found:
                empty = empty or found
            else:
                complaint = f"the JSON object has no `{first}`"
    return complaint if empty is None else empty


def described(unfit: ValidationError) -> str:
    """The first thing that is wrong with an object, and where."""
    first = unfit.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"])[:80]
    return f"{f'`{place}`: ' if place else ''}{first['msg']}"[:300]


def _starts(text: str, first: str) -> list[int]:
    """Where the answer may begin, the likeliest place first: bare, fenced, behind other words."""
    likely = [match.start() for match in re.finditer(rf'\{{\s*"{re.escape(first)}"\s*:', text)]
    others = [match.start() for match in re.finditer(r'\[\s*\{\s*"|\{\s*"', text)]
    return [*likely[: -_MOST_STARTS - 1 : -1], *others[:_MOST_STARTS]]


def _strict(node: Any) -> Any:
    """Every property required, no default: what may be missing may be null instead."""
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    strict = {name: _strict(value) for name, value in node.items()}
    if strict.get("type") == "object":
        strict["required"] = list(strict["properties"])
        strict["additionalProperties"] = False
        for value in strict["properties"].values():
            value.pop("default", None)
    return strict
