"""Functions that lowered kernels call, as LLVM IR text; a module contains those that it needs.

``function(name)`` makes the text for a name such as ``om_gather_4``; each file registers families.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module

Maker = Callable[..., str]

_FAMILIES: list[tuple[re.Pattern[str], Maker]] = []
_HOMES = (
    "access", "arithmetic", "asynchronous", "atomics", "banks", "caches", "cells", "checking",
    "copies", "counting", "half", "ordering", "printing", "releases", "resolve", "scheduler",
    "warp",
)  # fmt: skip
_USED = re.compile(r"@(om_\w+)")


def family(pattern: str) -> Callable[[Maker], Maker]:
    """Register the maker of all functions whose whole name matches; groups are its arguments."""

    def register(maker: Maker) -> Maker:
        _FAMILIES.append((re.compile(pattern), maker))
        return maker

    return register


@cache
def _families() -> list[tuple[re.Pattern[str], Maker]]:
    for home in _HOMES:
        import_module(f"{__name__}.{home}")
    return _FAMILIES


def function(name: str) -> str:
    """The definition of one library function."""
    for pattern, maker in _families():
        if match := pattern.fullmatch(name):
            return maker(*match.groups())
    raise KeyError(f"no library function {name}")


def closure(text: str) -> list[str]:
    """Definitions of every library function that ``text`` uses, directly or not."""
    done: dict[str, str] = {}
    todo = set(_USED.findall(text))
    while todo:
        name = todo.pop()
        done[name] = function(name)
        todo |= set(_USED.findall(done[name])) - set(done)
    return [done[name] for name in sorted(done)]
