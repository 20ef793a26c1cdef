"""P17, forestalled: a guard around all that a thread leaves behind turns others away at once.

``float s = 0; for (...) s += a[...]; if (x < w) out[x] = s;``: threads beyond the end add up what
nobody asks for. With ``if (!(x < w)) return;`` in front of the loop rules find which threads work.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import edited, spread
from optiml_magic.kernels.expressions import Binary, Expr, Unary, every
from optiml_magic.kernels.primitives.axes import without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, names
from optiml_magic.kernels.primitives.slimmed import SAYING
from optiml_magic.kernels.primitives.stepwise import plain
from optiml_magic.kernels.primitives.type_names import names_between, names_in
from optiml_magic.kernels.tree import Block, Declare, If, Leave, Loop, Statement, walk

_TRAPPING = ("/", "%", "<<", ">>")


@primitive
def forestalled(kernel: Kernel) -> Kernel:
    """The kernel with the guard of its stores in front of its loops, behind which it was."""
    effects, body = Effects(kernel), kernel.function.body
    effects.straightforward()
    without_warps(kernel)
    for name in sorted(kernel.reading.calls & SAYING):
        raise NotLegal(f"`{name}` tells which thread came to it")
    stores = {a.own for a in kernel.reading.accesses if a.space == "global" and a.mode != "load"}
    found = [at for at, s in enumerate(body.body) if effects.inside(s) & stores]
    branch = body.body[found[0]] if len(found) == 1 else None
    plain_one = isinstance(branch, If) and branch.other is None and branch.before is None
    if not isinstance(branch, If) or not plain_one or branch.constant:
        raise NotLegal("what it leaves behind is not under one guard")
    if stores & {e for e in effects.inside(body) if e not in effects.inside(branch.then)}:
        raise NotLegal("its guard leaves something behind itself", branch.line)
    if names_in(kernel, branch):
        raise NotLegal("types or macros are declared in what its guard is around", branch.line)
    place = _place(effects, body, branch.test)
    if may_trap(branch.test):
        ways = [at + 1 for at, s in enumerate(body.body[: found[0]]) if leaves_within(s)]
        place = max([place, *ways])
    while place < found[0] and names_between(kernel, body, place, found[0]):
        place += 1
    if not any(isinstance(s, Loop) for one in body.body[place : found[0]] for s in walk(one)):
        raise NotLegal("no loop stands before its guard", branch.line)
    way = Leave(None, branch.line, "return")
    guard = If(None, branch.line, Unary(None, "!", branch.test), way)
    rest = edited(body, {branch: spread(branch.then)})
    return kernel.rewritten(
        replace(rest, body=(*rest.body[:place], guard, *rest.body[place:]), span=None)
    )


def may_trap(test: Expr) -> bool:
    """Whether a test divides or shifts: by some numbers it may not, which ways out tell."""
    return any(isinstance(e, Binary) and e.op in _TRAPPING for e in every(test))


def leaves_within(statement: Statement) -> bool:
    """Whether a thread may end in a statement."""
    return any(isinstance(s, Leave) and s.kind == "return" for s in walk(statement))


def _place(effects: Effects, body: Block, test: Expr) -> int:
    """How many statements have to stand before a test, which says the same there."""
    if not plain(test, effects):
        raise NotLegal("its guard asks for more than names and numbers")
    given = {p for p in effects.kernel.function.parameters if p.name not in effects.moved}
    declared = {
        v: at + 1 for at, s in enumerate(body.body) if isinstance(s, Declare)
        for v in s.variables if v in effects.lasting
    }  # fmt: skip
    asked = names([test])
    if not asked <= given | declared.keys():
        raise NotLegal("what its guard asks for changes")
    return max((declared[v] for v in asked - given), default=0)
