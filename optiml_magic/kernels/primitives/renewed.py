"""A whole number that gets new values one after the other is a local for each of them.

``int t = i / w; int y = t % h; t /= h;``: what ``t`` holds at a place is then said by its name, so
that steps which follow an index to what it is made of need not know the order of statements.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Name
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.scoped import quiet
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Statement,
    Variable,
    Verbatim,
    expressions,
    walk,
)
from optiml_magic.kernels.types import named


@primitive
def renewed(kernel: Kernel) -> Kernel:
    """The kernel where statements beside its declaration change no whole number."""
    body = kernel.function.body
    if any(isinstance(s, Verbatim) for s in walk(body)):
        raise NotLegal("what a statement of it does is not read")
    renewing = _Renewing(kernel)
    for block in (s for s in walk(body) if isinstance(s, Block)):
        for declared in (s for s in block.body if isinstance(s, Declare)):
            for variable in declared.variables:
                renewing.add(block, declared, variable)
    if not renewing.statements:
        raise NotLegal("no whole number gets new values beside its declaration")
    # A statement holds names that were exchanged: the innermost first.
    swaps: dict[Node, Node] = {**renewing.names}
    for place in reversed([s for s in walk(body) if s in renewing.statements]):
        swaps[place] = edited(renewing.statements[place], renewing.names)
    return kernel.rewritten(edited(body, swaps))


class _Renewing:
    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.effects = kernel, Effects(kernel)
        self.names: dict[Node, Node] = {}
        self.statements: dict[Statement, Declare] = {}
        self.taken: list[str] = []

    def add(self, block: Block, declared: Declare, variable: Variable) -> None:
        """Exchange what stands behind a declaration, where that alone changes the variable."""
        kind = named(variable.type.base, self.kernel.unit.aliases)
        plain = variable.storage == "local" and not (variable.type.depth or variable.extents)
        odd = variable.type.reference or variable.type.volatile or variable.value is None
        behind = block.body[block.body.index(declared) + 1 :]
        changing = [s for s in behind if variable in self.effects.changed(s)]
        if not plain or odd or not kind.integral or not changing or variable in self.effects.lent:
            return
        values = [_new_value(s, variable) for s in changing]
        if None in values:
            return
        name, at = variable.name, 0
        for statement in behind:
            for expr in expressions(statement):
                if isinstance(expr, Name) and expr.variable is variable and name != variable.name:
                    self.names[expr] = replace(expr, name=name, span=None)
            if statement in changing:
                value, at = values[at], at + 1
                name = self.kernel.fresh(variable.name, *self.taken)
                self.taken.append(name)
                new = replace(variable, name=name, value=value, span=None, line=statement.line)
                words = f"{declared.words.rstrip()} "
                self.statements[statement] = Declare(None, statement.line, words, (new,))


def _new_value(statement: Statement, variable: Variable) -> Expr | None:
    """What a statement gives a variable, where it does nothing else."""
    match statement:
        case Evaluate(expression=Assign(op=op, target=Name(variable=own) as target, value=value)):
            if own is not variable or not quiet(value):
                return None
            return value if op == "=" else Binary(None, op.removesuffix("="), target, value)
    return None
