"""Other spellings of the same kernel, one module for each.

Every module has ``apply(text) -> str | None``: the program in that spelling, or None where there is
nothing in it to be spelled so. One that gives names anew has ``renaming(text)`` as well, from the
old name to the new one.
"""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Form:
    """A spelling: its name, and how a text is brought into it."""

    name: str
    apply: Callable[[str], str | None]
    renaming: Callable[[str], Mapping[str, str]]


def _unchanged(text: str) -> Mapping[str, str]:
    del text
    return {}


def _load(name: str) -> Form:
    module = import_module(f"{__name__}.{name}")
    return Form(name, module.apply, getattr(module, "renaming", _unchanged))


FORMS = tuple(_load(name) for name in sorted(m.name for m in pkgutil.iter_modules(__path__)))
