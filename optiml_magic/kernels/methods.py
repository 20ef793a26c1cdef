"""Member functions of the structures of a text, which are not looked through."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.expressions import Call, Name
from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.tree import Function, expressions
from optiml_magic.kernels.unit import Unit


def outside(unit: Unit, name: str) -> frozenset[str]:
    """The variables of the file that methods of this name may touch, or what they call."""
    known = {variable.name for one in unit.declarations for variable in one.variables}
    return frozenset(
        e.name
        for function in _reached(unit, name, set())
        for e in expressions(function.body)
        if isinstance(e, Name) and e.variable is None and e.name in known
    )


def _reached(unit: Unit, name: str, seen: set[str]) -> Iterator[Function]:
    seen.add(name)
    for function in (f for f in unit.functions if bare(f.name) == name):
        yield function
        for called in (e for e in expressions(function.body) if isinstance(e, Call)):
            if bare(called.function) not in seen:
                yield from _reached(unit, bare(called.function), seen)
