"""Which primitives a rule strung together: for the time of a look, their functions take notes."""

from __future__ import annotations

import functools
import pkgutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from types import FunctionType
from typing import Any

from optiml_magic.kernels import primitives
from optiml_magic.kernels.primitives import (
    combine,
    cooperating,
    dispatched,
    places,
    scanned,
    selections,
    warps,
)
from optiml_magic.kernels.primitives.base import Kernel, primitive
from optiml_magic.proposers.rewrites import REWRITES

#: What other steps are made with, and is no step by itself.
_PARTS = (
    places.placed,
    combine.combined,
    scanned.helpers,
    selections.selected,
    cooperating.cooperation,
    warps.followed,
)
#: What gives a made program another launch, behind its last step.
_LAST = dispatched.dispatched
_OURS = "optiml_magic."
_STEP = primitive(lambda kernel: kernel).__code__  # of everything that is declared a primitive


@functools.cache
def functions() -> dict[str, tuple[Callable[..., Any], ...]]:
    """The functions of every primitive, by its file."""
    found: dict[str, tuple[Callable[..., Any], ...]] = {}
    for info in pkgutil.iter_modules(primitives.__path__):
        module = import_module(f"{primitives.__name__}.{info.name}")
        own = [f for f in vars(module).values() if getattr(f, "__module__", "") == module.__name__]
        steps = [f for f in own if getattr(f, "__code__", None) is _STEP or f in (*_PARTS, _LAST)]
        if steps:
            found[info.name] = tuple(steps)
    return found


PRIMITIVES = tuple(functions())


@dataclass(frozen=True)
class _Step:
    before: str
    after: str
    names: tuple[str, ...]  # of the step, behind those of its parts


@dataclass
class Notes:
    """The steps that were done, in order; ``parts`` are of the one that is under way."""

    steps: list[_Step] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)

    def since(self, count: int) -> tuple[str, ...]:
        """The primitives behind the last of the steps, if one was done after the first ``count``.

        Those done before count as well where their results are what it began with.
        """
        if len(self.steps) <= count:
            return ()
        *earlier, last = self.steps
        names = [last.names]
        for step in reversed(earlier):
            if step.after == last.before != step.before:  # what changes nothing is none
                names.append(step.names)
                last = step
        return tuple(dict.fromkeys(name for own in reversed(names) for name in own))


@contextmanager
def noted() -> Iterator[Notes]:
    """The steps that rules do meanwhile, in whatever module or rule they are known."""
    notes = Notes()
    wrapped = {
        function: _wrapped(name, function, notes)
        for name, own in functions().items()
        for function in own
    }
    homes: list[tuple[Any, str, Any, Any]] = [
        (module, name, value, wrapped[value])
        for home, module in sys.modules.items()
        if home.startswith(_OURS)
        for name, value in vars(module).items()
        if isinstance(value, FunctionType) and value in wrapped
    ]
    homes += [
        (kind, "before", own, tuple(wrapped.get(step, step) for step in own))
        for kind in map(type, REWRITES)
        if (own := vars(kind).get("before"))
    ]
    try:
        for home, name, _, noting in homes:
            setattr(home, name, noting)
        yield notes
    finally:
        for home, name, own, _ in homes:
            setattr(home, name, own)


def _wrapped(name: str, function: Callable[..., Any], notes: Notes) -> Callable[..., Any]:
    @functools.wraps(function)
    def noting(*args: Any, **kwargs: Any) -> Any:
        outer, notes.parts = notes.parts, []
        try:
            made = function(*args, **kwargs)
        finally:
            inner, notes.parts = notes.parts, outer
        if isinstance(made, Kernel):
            step = _Step(args[0].program.text, made.program.text, (*inner, name))
            notes.steps.append(step)
        elif function is _LAST and made.text != args[0].text and notes.steps:
            last = notes.steps[-1]
            notes.steps[-1] = replace(last, names=(*last.names, name))
        elif function in _PARTS:
            notes.parts += [*inner, name]
        return made

    return noting
