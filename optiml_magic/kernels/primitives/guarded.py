"""P17, a guard first: a test of all that is stored comes before what is computed for it.

``for (k) sum += a[row * n + k]; if (row < m) out[row] = sum;`` has the guard in front of the loop.
Threads that store nothing then do nothing, and loads need no tests that the guard says.
"""

from __future__ import annotations

import re

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import (
    Assign,
    Call,
    Expr,
    Index,
    Lambda,
    Member,
    Step,
    Unary,
    Unread,
    builtin,
    every,
)
from optiml_magic.kernels.functions import bare, pure
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.innermost import says
from optiml_magic.kernels.primitives.places import code
from optiml_magic.kernels.tree import Blank, Block, Declare, If, Loop, Statement, Variable

_WORD = re.compile(r"[A-Za-z_]\w*")


@primitive
def guarded(kernel: Kernel) -> Kernel:
    """The kernel whose last statement, a branch on which all that it stores depends, comes first.

    What the branch asks for is declared before it.
    """
    effects = Effects(kernel)
    effects.straightforward()
    before, own = list[Statement](), kernel.function.body
    while True:
        body = [s for s in own.body if not isinstance(s, Blank)]
        branch = body[-1] if body else None
        if not isinstance(branch, If) or branch.other is not None or branch.before is not None:
            raise NotLegal("what it stores does not stand in a branch at its end")
        first = next((at for at, s in enumerate(body) if isinstance(s, Loop)), None)
        _check_computes(kernel, effects, body[:-1])
        if first is not None:
            break
        if not isinstance(branch.then, Block):
            raise NotLegal("no loop stands before what it stores")
        before, own = [*before, *body[:-1]], branch.then
    moved = _asked(kernel, effects, branch.test, [*before, *body[:first]], body[first:-1])
    _check_names(kernel, own.body[own.body.index(body[first]) : own.body.index(branch)], moved)
    told = [kernel.show(s) for s in moved]
    told.append(f"if (!({kernel.spelled(branch.test)})) return;")
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(moved)
    swaps[body[first]] = (lines("\n".join(told)), body[first])
    then = branch.then
    swaps[branch] = tuple(then.statements) if _opens(then) else then
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _opens(then: Statement) -> bool:
    """Whether what a branch does may stand without its braces."""
    return bool(then.statements) and not any(isinstance(s, Declare) for s in then.statements)


def _check_computes(kernel: Kernel, effects: Effects, before: list[Statement]) -> None:
    """Raise NotLegal where something in front of the branch leaves more than locals."""
    own = {e for s in before for e in effects.inside(s)}
    for access in kernel.reading.accesses:
        if access.own in own and access.mode != "load" and access.space != "local":
            raise NotLegal("it stores something else as well", access.line)
    for e in own:
        if isinstance(e, Lambda | Unread) or (isinstance(e, Call) and not _computes(e)):
            raise NotLegal("what it does before is not only computed")


def _computes(call: Call) -> bool:
    return call.callee is None and pure(bare(call.function))


def _asked(
    kernel: Kernel, effects: Effects, test: Expr, before: list[Statement], behind: list[Statement]
) -> list[Statement]:
    """The declarations behind the first loop that a test asks for, in their order."""
    given: set[Variable] = {
        p for p in kernel.function.parameters if p.name not in effects.moved
    } | {v for s in before if isinstance(s, Declare) for v in s.variables if v in effects.lasting}
    moved, asking = dict[Statement, None](), [test]
    while asking:
        expr = asking.pop()
        if any(_does(e) for e in every(expr)):
            raise NotLegal("its test does more than to compare")
        for variable in names([expr]) - given:
            found = next(
                (s for s in behind if isinstance(s, Declare) and s.variables == (variable,)), None
            )
            if found is None or variable not in effects.lasting or variable.value is None:
                raise NotLegal(f"`{variable.name}` is not known before its loop")
            if found not in moved:
                moved[found] = None
                asking.append(variable.value)
    return [s for s in behind if s in moved]


def _check_names(kernel: Kernel, behind: tuple[Statement, ...], moved: list[Statement]) -> None:
    """Raise NotLegal where a name means something else in front of the first loop."""
    if any(isinstance(s, Blank) and says(kernel, s) for s in behind):
        raise NotLegal("more than statements stands behind its loop")
    for at, statement in enumerate(behind):
        own = {v.name for s in moved if s in behind[at + 1 :] and isinstance(s, Declare)
               for v in s.variables}  # fmt: skip
        words = code(kernel.unit, statement.span) if statement.span is not None else ""
        if own & {*_WORD.findall(words)} or (own and statement.span is None):
            raise NotLegal("a local that its test asks for has another's name", statement.line)


def _does(e: Expr) -> bool:
    """Whether an expression loads something or changes it."""
    if isinstance(e, Member) and not builtin(e):
        return True
    led = isinstance(e, Unary) and e.op in ("*", "&")
    return led or isinstance(e, Assign | Step | Call | Index | Lambda | Unread)
