"""Scalars in shared memory that one thread works with are its locals meanwhile.

``if (threadIdx.x == 0) { most = x[0]; for (...) most = max(most, x[k]); }`` is a loop over a local,
which the thread stores at the end: no other one asks while it is at work.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Assign, Binary, Expr, Name, Step, builtin
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.roles import key_of
from optiml_magic.kernels.tree import (
    Block,
    Evaluate,
    If,
    Leave,
    Statement,
    Variable,
    expressions,
    walk,
)


@primitive
def scalars_held(kernel: Kernel) -> Kernel:
    """The kernel whose branches for one thread have such locals."""
    body, effects = kernel.function.body, Effects(kernel)
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    taken: list[str] = []
    if kernel.block[1:] != (1, 1):
        raise NotLegal("its block has more than one axis")
    for branch in (s for s in body.body if isinstance(s, If)):
        if branch.other is not None or branch.before is not None or not _is_one(kernel, branch):
            continue
        if any(isinstance(s, Leave) and s.kind == "return" for s in walk(branch)):
            continue
        inner = branch.then.body if isinstance(branch.then, Block) else (branch.then,)
        held = [v for v in _shared(branch) if any(_changes(o, v) for o in loops_in(branch))]
        held = [v for v in held if v not in effects.lent and _begins(inner, v)]
        if not held:
            continue
        names = {v: kernel.fresh(f"{v.name}_own", *taken) for v in held}
        taken += names.values()
        renamed: dict[Node, Node] = {
            e: Name(None, names[e.variable], e.variable) for s in inner for e in expressions(s)
            if isinstance(e, Name) and e.variable in names
        }  # fmt: skip
        first = [lines(f"{v.type.base} {name};") for v, name in names.items()]
        last = [lines(f"{v.name} = {name};") for v, name in names.items()]
        made = Block(None, branch.line, (*first, *(edited(s, renamed) for s in inner), *last))
        swaps[branch] = replace(branch, then=made, span=None, head=None)
    if not swaps:
        raise NotLegal("no thread works with a scalar in shared memory")
    return kernel.rewritten(edited(body, swaps))


def _is_one(kernel: Kernel, branch: If) -> bool:
    """Whether a branch is for one thread of the block, by a local of its place as well."""
    match branch.test:
        case Binary(op="==", left=left, right=right):
            named = left.variable.value if isinstance(left, Name) and left.variable else None
            lasting = isinstance(left, Name) and left.variable in Effects(kernel).lasting
            thread = builtin(left) == "threadIdx.x" or (
                lasting and named is not None and builtin(named) == "threadIdx.x"
            )  # fmt: skip
            return thread and bool(key_of(right))
    return False


def _shared(branch: If) -> list[Variable]:
    found = {e.variable: None for e in expressions(branch) if isinstance(e, Name)
             if e.variable is not None and e.variable.storage == "shared"
             and not e.variable.array and not e.variable.type.volatile
             and not e.variable.type.depth}  # fmt: skip
    return list(found)


def _changes(statement: Statement, variable: Variable) -> bool:
    return any(isinstance(e, Assign | Step) and _named(e.target) is variable
               for e in expressions(statement))  # fmt: skip


def _begins(inner: tuple[Statement, ...], variable: Variable) -> bool:
    """Whether the branch gives it a value before it asks for one."""
    for statement in inner:
        named = [e for e in expressions(statement) if _named(e) is variable]
        if not named:
            continue
        match statement:
            case Evaluate(expression=Assign(op="=", target=target)):
                return _named(target) is variable and len(named) == 1
        return False
    return False


def _named(expr: Expr) -> Variable | None:
    return expr.variable if isinstance(expr, Name) else None
