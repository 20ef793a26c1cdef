"""P14, single: a number or pointer that a kernel is given and changes is a local from there on.

``while (len-- > 0)`` on a parameter becomes ``int left = len; while (left-- > 0)``. What the kernel
was given then stays what it is, a size that indices and launches may be made of; so does a pointer,
``a += row * n``, by which elements are addressed as they lie in their array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Name, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.moved_once import named_by_lambdas
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    If,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named


@primitive
def copied_parameters(kernel: Kernel) -> Kernel:
    """The kernel whose numbers and pointers stay as given, with locals that change instead."""
    body, effects = kernel.function.body, Effects(kernel)
    changed = [v for v in kernel.function.parameters if v in effects.changed(body)]
    if not changed:
        raise NotLegal("no parameter changes")
    for leaf in walk(body):
        if isinstance(leaf, Verbatim):
            raise NotLegal(f"{leaf.reason} is not read", leaf.line)
    found = [v for v in changed if _is_plain(kernel, effects, v)]
    if not found:
        raise NotLegal(
            f"the parameter `{changed[0].name}` is no whole number or pointer of its own"
        )
    made = _copied(kernel, effects, found[0])
    again = copied_parameters(made) if len(found) > 1 else made
    return again if isinstance(again, Kernel) else made


def _is_plain(kernel: Kernel, effects: Effects, variable: Variable) -> bool:
    """Whether a parameter is a whole number or a pointer that nothing but its name leads to."""
    kind, own = variable.type, named(variable.type.base, kernel.unit.aliases)
    whole = own.kind == "int" and own.integral and own.lanes == 1 and not kind.depth
    if (
        not (whole or kind.depth == 1)
        or kind.reference
        or kind.volatile
        or variable.array
        or variable in effects.lent
    ):
        return False
    return all(e.name != variable.name for e in named_by_lambdas(kernel))


def _copied(kernel: Kernel, effects: Effects, variable: Variable) -> Kernel:
    """With a local that takes its place from the statement on that first changes it."""
    first, rest = _from(effects, variable, kernel.function.body.body)
    called = kernel.fresh(variable.name)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for statement in rest:
        names: dict[Node, Node] = {
            e: Name(None, called, variable)
            for e in expressions(statement) if isinstance(e, Name) and e.variable is variable
        }  # fmt: skip
        swaps[statement] = edited(statement, names)
    value = Name(None, variable.name, variable)
    own = replace(variable, name=called, span=None, value=value, initial=(), opening="=",
                  storage="local", restrict=False)  # fmt: skip
    const = "const " if variable.type.const and variable.type.depth else ""
    begun = Declare(None, first.line, f"{const}{variable.type.base} ", (own,))
    changed = swaps[first]
    assert isinstance(changed, Statement)
    swaps[first] = (begun, changed)
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _from(
    effects: Effects, variable: Variable, body: Sequence[Statement]
) -> tuple[Statement, Sequence[Statement]]:
    """The statement that first changes it, innermost where nothing behind asks, and all behind."""
    at = next(n for n, s in enumerate(body) if variable in effects.changed(s))
    later = any(variable in effects.mentions(s) for s in body[at + 1 :])
    match body[at]:
        case Block(body=inner) if not later:
            return _from(effects, variable, inner)
        case If(before=None, test=test, then=Block(body=inner), other=None) if not later:
            if all(e.variable is not variable for e in every(test) if isinstance(e, Name)):
                return _from(effects, variable, inner)
    return body[at], body[at:]
