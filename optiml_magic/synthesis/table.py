"""Which NumPy functions can be traced, each by ``entry(trace, *arguments, **options)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

Entry = Callable[..., Any]
E = TypeVar("E", bound=Entry)

FUNCTIONS: dict[Any, Entry] = {}

#: The methods of an array that are the function of the same name with the array as its first.
METHODS = frozenset((
    "sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmin", "argmax", "ptp",
    "cumsum", "cumprod", "argsort", "round", "clip", "dot", "ravel", "swapaxes", "squeeze",
    "diagonal", "trace", "take", "repeat", "searchsorted", "choose", "conj", "conjugate", "nonzero",
))  # fmt: skip


def function(*functions: Any) -> Callable[[E], E]:
    """The entry of one function, or of several that are the same; None is one NumPy lacks."""

    def entered(entry: E) -> E:
        FUNCTIONS.update((each, entry) for each in functions if each is not None)
        return entry

    return entered
