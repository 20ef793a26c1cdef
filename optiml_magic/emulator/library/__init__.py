"""Functions that lowered kernels call, as LLVM IR text; a module contains those that it needs.

``function(name)`` makes the text for a name such as ``om_gather_4``; each file registers families.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module

Maker = Callable[..., str]

_FAMILIES: list[tuple[re.Pattern[str], Maker]] = []
_HOMES = (
    "access", "arithmetic", "asynchronous", "atomics", "banks", "caches", "cells", "checking",
    "copies", "counting", "half", "mbarriers", "ordering", "printing", "releases", "resolve",
    "scheduler", "warp",
)  # fmt: skip
_USED = re.compile(r"@(om_\w+)")
_HEAD = re.compile(r"^define (internal )?(.*?)\{$", re.MULTILINE | re.DOTALL)


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


@cache
def function(name: str) -> str:
    """The definition of one library function."""
    for pattern, maker in _families():
        if match := pattern.fullmatch(name):
            return maker(*match.groups())
    raise KeyError(f"no library function {name}")


def parts(text: str, entries: Sequence[str]) -> list[str]:
    """``text``, and each function that it or ``entries`` need and that is never inlined.

    A part holds the inlined functions that it uses, and declares the others.
    """
    own, needed = _with_inlined(text)
    done: dict[str, str] = {}
    todo = {*needed, *entries}
    while todo:
        name = todo.pop()
        done[name], needed = _apart(name)
        todo |= needed - done.keys()
    return [own, *(done[name] for name in sorted(done))]


@cache
def _apart(name: str) -> tuple[str, frozenset[str]]:
    return _with_inlined(function(name).replace("define internal ", "define ", 1), name)


def _with_inlined(text: str, name: str = "") -> tuple[str, frozenset[str]]:
    """The text of a part, of the function ``name``, and what others it needs."""
    declared: dict[str, str] = {}
    inlined: dict[str, str] = {}
    todo = set(_USED.findall(text)) - {name}
    while todo:
        used = todo.pop()
        body = function(used)
        (internal, header) = _HEAD.findall(body)[0]
        if internal and "noinline" not in header:
            inlined[used] = body
            todo |= set(_USED.findall(body)) - inlined.keys() - declared.keys() - {name}
        else:
            declared[used] = f"declare {header}"
    ordered = [found[used] for found in (declared, inlined) for used in sorted(found)]
    return "\n".join([text, *ordered]), frozenset(declared)
