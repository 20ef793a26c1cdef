"""Whether one of several ways is taken whatever the data say: of ``if`` and ``else`` one is."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from itertools import product

from optiml_magic.kernels.symbols import Always, Condition, Every, Some

_MOST = 32  # ways to one place that are looked at, and twice as many as cover one: ours

_Way = frozenset[Condition]


def ways(guard: Iterable[Condition], held: Collection[Condition]) -> list[_Way]:
    """The ways to a place: what each asks for beside what is ``held``; too many are none."""
    found: list[_Way] = [frozenset()]
    for condition in guard:
        found = [a | b for a, b in product(found, _ways(condition, held))][: _MOST + 1]
    return found if len(found) <= _MOST else []


def cover(found: Collection[_Way]) -> bool:
    """Whether one of the ways is taken for certain."""
    if any(not way for way in found):
        return True
    parts = frozenset[Condition]().union(*found)
    if not parts or max(len(found), len(parts)) > _MOST // 2:
        return False
    one = next(iter(parts))
    return all(
        cover([way - {known} for way in found if ~known not in way]) for known in (one, ~one)
    )


def _ways(condition: Condition, held: Collection[Condition]) -> Iterator[_Way]:
    match condition:
        case _ if condition in held:
            yield frozenset()
        case Every(parts=parts):
            for each in product(*([*_ways(part, held)] for part in parts)):
                yield frozenset[Condition]().union(*each)
        case Some(parts=parts):
            for part in parts:
                yield from _ways(part, held)
        case Always(value=value):
            if value:
                yield frozenset()
        case _:
            yield frozenset([condition])
