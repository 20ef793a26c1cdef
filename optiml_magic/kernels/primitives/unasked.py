"""Normal form: local structures of which nothing is asked go, with what sets their members.

So do numbers that were only for these. What is left of ``Matrix sub = part(a, row, k);`` where
loads no longer go through it.
"""

from __future__ import annotations

import re

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Lambda,
    Member,
    Name,
    Step,
    Unread,
    every,
)
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import (
    Declare,
    Evaluate,
    If,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


@primitive
def unasked(kernel: Kernel, *, numbers: bool = False) -> Kernel:
    """The kernel without such structures; there must be one, or one of any ``numbers``."""
    body = kernel.function.body
    gone: set[Statement] = set()
    heads = {s.before for s in walk(body) if isinstance(s, Loop | If)}
    while True:
        left = [s for s in walk(body) if s not in gone]
        found = _declared(kernel, left, records=not (gone or numbers))
        found = [v for v in found if not numbers or _is_read(kernel, v)]
        more = {s for variable in found for s in _only_set(kernel, left, variable)} - heads
        if not more:
            break
        gone |= more
    if not gone:
        raise NotLegal("something is asked of each structure")
    swaps: dict[Node, Node | None] = dict.fromkeys(gone)
    return kernel.rewritten(edited(body, swaps))


def _declared(kernel: Kernel, left: list[Statement], *, records: bool) -> list[Variable]:
    """The locals that are declared alone: structures, or numbers that these may have been given."""
    structs, aliases = kernel.unit.structs, kernel.unit.aliases
    found = [s.variables[0] for s in left if isinstance(s, Declare) and len(s.variables) == 1]
    plain = [v for v in found if not (v.type.depth or v.type.reference or v.extents)]
    alone = [v for v in plain if v.storage == "local"]
    kinds = {v: structs.type(v.type.base, aliases) for v in alone}
    return [v for v in alone if kinds[v].kind == "record" or not records]


def _is_read(kernel: Kernel, variable: Variable) -> bool:
    """Whether all words that name a local are expressions: others are in pragmas and the like."""
    body = kernel.function.body
    words = re.findall(r"\w+", _COMMENT.sub(" ", kernel.show(body)))
    declared = [v for s in walk(body) if isinstance(s, Declare) for v in s.variables]
    known = sum(v.name == variable.name for v in declared)
    known += sum(isinstance(e, Name) and e.name == variable.name for e in expressions(body))
    return words.count(variable.name) == known


def _only_set(kernel: Kernel, left: list[Statement], variable: Variable) -> list[Statement]:
    """The statements that declare a local and set its members; none where it is asked for."""
    found = []
    for statement in left:
        if not any(
            isinstance(e, Name) and e.variable is variable
            for top in statement.expressions for e in every(top)
        ) and not (isinstance(statement, Declare) and variable in statement.variables):  # fmt: skip
            continue
        if not _sets(kernel, statement, variable):
            return []
        found.append(statement)
    return found


def _sets(kernel: Kernel, statement: Statement, variable: Variable) -> bool:
    """Whether a statement does nothing but to give it, or a member of it, a value."""
    match statement:
        case Declare(variables=(Variable(value=value) as own,)) if own is variable:
            return not own.initial and (value is None or _quiet(kernel, value, variable))
        case Evaluate(expression=Assign(op="=", target=target, value=value)):
            match target:
                case Name(variable=held) | Member(base=Name(variable=held), arrow=False):
                    return held is variable and _quiet(kernel, value, variable)
    return False


def _quiet(kernel: Kernel, value: Expr, variable: Variable) -> bool:
    """Whether a value neither asks for the local nor does anything."""
    return not any(
        isinstance(e, Assign | Step | Lambda | Unread)
        or (
            isinstance(e, Call)
            and not (
                pure(bare(e.function)) and not kernel.unit.called(e.function, len(e.arguments))
            )
        )
        or (isinstance(e, Name) and e.variable is variable)
        for e in every(value)
    )
