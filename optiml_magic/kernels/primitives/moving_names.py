"""Whether what a function names means the same in the body of a kernel, where it may stand."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator

from optiml_magic.kernels.functions import bare
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import declared_in
from optiml_magic.kernels.primitives.places import code
from optiml_magic.kernels.tree import Blank, Function, walk
from optiml_magic.kernels.unit import Unit

_NAME = re.compile(r"(?<![\w.])(?<!->)(?<!::)[A-Za-z_]\w*")
_DECLARED = (
    re.compile(r"\b(?:using|struct|class|union|enum)\s+(\w+)"),
    re.compile(r"\btypedef\b[^;{}]*?(\w+)\s*;"),
    re.compile(r"\b(\w+)\s*(?:\[[^]]*\]\s*)*(?:=(?!=)|\{)"),  # a constant
    re.compile(r"[{,]\s*(\w+)\s*(?=[,}])"),  # one of an enumeration
)
_WORDS = {"const", "do", "else", "enum", "return", "struct"}


def means_the_same(kernel: Kernel, function: Function, exchanged: Container[str] = ()) -> bool:
    """Whether no name of a function is another thing where a kernel calls it.

    A local of the kernel may hide what the function names, and what its namespace or its structure
    declares is not known outside. The ``exchanged`` names are to be others.
    """
    if not all(p.name for p in function.parameters):
        return False
    free = {name for name in _free(kernel.unit, function) if name not in exchanged}
    scoped = _within_scopes(kernel.unit) if "::" in function.name or function.method else ()
    return not free & {*_of_kernel(kernel), *scoped}


def _free(unit: Unit, function: Function) -> set[str]:
    """What a function names that is not its own, with its types."""
    own = {p.name for p in function.parameters} | {v.name for v in declared_in(function.body)}
    types = [function.result, *(p.type for p in function.parameters)]
    inside = [code(unit, function.body.span)] if function.body.span else []
    words = " ".join([*inside, *(t.base for t in types)])
    return {*_NAME.findall(words)} - own - _WORDS


def _of_kernel(kernel: Kernel) -> Iterator[str]:
    """The names of a kernel's parameters, locals and types of its own."""
    yield from (p.name for p in kernel.function.parameters)
    yield from (v.name for v in declared_in(kernel.function.body))
    for statement in walk(kernel.function.body):
        if isinstance(statement, Blank):
            shown = kernel.show(statement)
            yield from (name for kind in _DECLARED for name in kind.findall(shown))


def _within_scopes(unit: Unit) -> Iterator[str]:
    """What namespaces and structures of the text declare, but for fields without a value."""
    yield from (bare(f.name) for f in unit.functions if "::" in f.name or f.method)
    whole = _without_bodies(unit)
    for kind in _DECLARED:
        for found in kind.finditer(whole):
            if whole.count("{", 0, found.start() + 1) > whole.count("}", 0, found.start()):
                yield found[1]


def _without_bodies(unit: Unit) -> str:
    """The text of a unit but for what its functions do."""
    parts, at = list[str](), 0
    for start, end in sorted(f.body.span for f in unit.functions if f.body.span):
        if start >= at:
            parts.append(code(unit, (at, start)))
            at = end
    return " ".join([*parts, code(unit, (at, len(unit.syntax.text)))])
