"""The strategies as their files have them."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

_FENCE = "+++\n"


@dataclass(frozen=True)
class Strategy:
    """One file: ``name`` is the file's, ``text`` what the model is told of it.

    ``graph``, ``words`` and ``limits`` are what speaks for it, or against it, with the weights.
    """

    name: str
    title: str
    text: str
    graph: Mapping[str, float] = field(default_factory=dict)
    words: Mapping[str, float] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)


@cache
def strategies() -> tuple[Strategy, ...]:
    """All that come with the package, by name."""
    folder = files(__package__)
    texts = {one.name: one.read_text("utf-8") for one in folder.iterdir() if one.name[-3:] == ".md"}
    return tuple(read(name[:-3], text) for name, text in sorted(texts.items()))


def read(name: str, text: str) -> Strategy:
    """The strategy of one file; ValueError where its head is not as it should be."""
    before, head, body = text.split(_FENCE, 2)
    if before:
        raise ValueError(f"{name} has text before its head")
    return Strategy(name, text=body.strip(), **tomllib.loads(head))
