"""Locals that have the name of something else get one of their own, so that steps may lift any."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Declare, Statement, Variable, expressions, walk


@primitive
def unshadowed(kernel: Kernel) -> Kernel:
    """The kernel without locals that hide one around them, or a parameter."""
    body = kernel.function.body
    given = frozenset(p.name for p in kernel.function.parameters)
    hiding: dict[Variable, str] = {}
    _find(kernel, body.body, given, hiding)
    if not hiding:
        raise NotLegal("no local hides another")
    return kernel.rewritten(edited(body, renaming(body, hiding)), tidy=False)


@primitive
def apart_from(kernel: Kernel, other: Kernel) -> Kernel:
    """The kernel without locals that have the name of a parameter of another kernel."""
    given = {p.name for p in other.function.parameters}
    own = given & {p.name for p in kernel.function.parameters}
    words: list[str] = [*other.words]
    called: dict[Variable, str] = {}
    for statement in walk(kernel.function.body):
        for variable in statement.variables if isinstance(statement, Declare) else ():
            if variable.name in given - own:
                called[variable] = kernel.fresh(variable.name, *words)
                words.append(called[variable])
    if not called:
        raise NotLegal("none of its locals has the name of a parameter there")
    body = kernel.function.body
    return kernel.rewritten(edited(body, renaming(body, called)), tidy=False)


def renaming(body: Statement, called: dict[Variable, str]) -> dict[Node, Node]:
    """What to exchange, so that these locals have these names."""
    swaps: dict[Node, Node] = {
        e: replace(e, name=called[e.variable], span=None)
        for e in expressions(body)
        if isinstance(e, Name) and e.variable in called
    }
    for statement in walk(body):
        if isinstance(statement, Declare) and not called.keys().isdisjoint(statement.variables):
            inner = edited(statement, swaps)
            swaps[statement] = replace(
                inner,
                variables=tuple(
                    replace(new, name=called.get(old, old.name), span=None)
                    for old, new in zip(statement.variables, inner.variables, strict=True)
                ),
                span=None,
            )
    return swaps


def _find(
    kernel: Kernel,
    statements: tuple[Statement, ...],
    outer: frozenset[str],
    found: dict[Variable, str],
) -> None:
    """Names of their own for those that hide one of ``outer``; a body's own names hide nothing."""
    own = set[str]()
    for statement in statements:
        if isinstance(statement, Declare):
            for variable in statement.variables:
                if variable.name in outer:
                    found[variable] = kernel.fresh(variable.name, *found.values())
                own.add(variable.name)
        else:
            _find(kernel, statement.statements, outer | own, found)
