"""A local of a round that is given another value is another local from there on.

``float v = x[k]; v = fmaxf(v, 0.0f); sum += v * w[k];`` keeps what was loaded and what is made of
it apart, so that each local is what it is declared with, as steps ask that look at one round.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Assign, Name, Step, Unread, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Evaluate,
    Loop,
    Statement,
    Variable,
    Verbatim,
    walk,
)

_MOST = 16  # values of a kernel; ours
_ANEW = frozenset({"=", "+=", "-=", "*=", "/="})


@primitive
def renewed(kernel: Kernel) -> Kernel:
    """The kernel with a local of its own for each value that a local of a round is given."""
    made = kernel
    for _ in range(_MOST):
        found = next(_given(made), None)
        if found is None:
            break
        made = _apart(made, *found)
    if made is kernel:
        raise NotLegal("no local of a round is given another value")
    return made


def _given(kernel: Kernel) -> Iterator[tuple[Block, Variable, Statement]]:
    """Bodies of loops, a local of theirs, and what gives it another value for the first time."""
    effects, body = Effects(kernel), kernel.function.body
    if any(isinstance(s, Verbatim) for s in walk(body)):
        return
    for block in (loop.body for loop in loops_in(body) if isinstance(loop.body, Block)):
        if any(isinstance(s, Loop) for s in walk(block)):
            continue
        for at, declared in enumerate(block.body):
            for variable in declared.variables if isinstance(declared, Declare) else ():
                rest = block.body[at + 1 :]
                first = next((s for s in rest if variable in effects.changed(s)), None)
                if first is not None and _plain(first, variable, effects):
                    yield block, variable, first


def _plain(statement: Statement, variable: Variable, effects: Effects) -> bool:
    """Whether a statement gives a plain local a value, and does nothing else."""
    match statement:
        case Evaluate(expression=Assign(op=op, target=Name(variable=own), value=value)):
            alone = not any(isinstance(e, Assign | Step | Unread) for e in every(value))
            plain = not variable.array and not variable.type.depth and not variable.type.reference
            kept = variable.storage != "local" or variable.value is None
            free = not kept and variable not in effects.lent
            return own is variable and op in _ANEW and alone and plain and free
    return False


def _apart(kernel: Kernel, block: Block, variable: Variable, statement: Statement) -> Kernel:
    assert isinstance(statement, Evaluate)
    assert isinstance(statement.expression, Assign)
    op, value = statement.expression.op.removesuffix("="), statement.expression.value
    new, shown = kernel.fresh(variable.name), kernel.spelled(value)
    made = f"{variable.name} {op} ({shown})" if op else shown
    rest = block.body[block.body.index(statement) + 1 :]
    swaps: dict[Node, Node] = {
        e: text(new) for e in _asking(kernel, rest) if e.variable is variable
    }
    swaps[statement] = lines(f"{declared_type(kernel, variable)} {new} = {made};")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _asking(kernel: Kernel, statements: tuple[Statement, ...]) -> Iterator[Name]:
    inside = (Effects(kernel).inside(s) for s in statements)
    yield from (e for found in inside for e in found if isinstance(e, Name))
