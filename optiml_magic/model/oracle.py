"""What a model takes some words to mean: a reference, and examples that a person can check."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Example:
    """Inputs by name and what comes of them, both as JSON: small, so that a person can check it."""

    inputs: str
    output: str

    @classmethod
    def of(cls, inputs: Mapping[str, Any], output: Any) -> Example:
        """An example that a user gives."""
        return cls(json.dumps(listed(dict(inputs))), json.dumps(listed(output)))


@dataclass(frozen=True)
class Oracle:
    """What a model wrote for some words.

    ``source`` defines ``reference``, and ``inputs`` where the user gave none; ``sizes`` are for
    that. ``confirmed`` says who answers for it; "" as long as nobody does.
    """

    words: str
    model: str
    source: str
    sizes: Mapping[str, int]
    examples: tuple[Example, ...]
    confirmed: str = ""


def listed(value: Any) -> Any:
    """A value as JSON has it, arrays as lists."""
    if isinstance(value, dict):
        return {name: listed(one) for name, one in value.items()}
    if isinstance(value, tuple):
        return [listed(one) for one in value]
    return value.tolist() if hasattr(value, "tolist") else value
