"""Normal form: a test of whether an item is there, and then of what memory says of it, is two.

``if (i < n && a[i] > 0) f(i);`` becomes ``if (i < n) { if (a[i] > 0) f(i); }``, and ``if (i >= n ||
a[i] <= 0) return;`` two ways out. The first says how many items there are, whatever they hold. So
does ``if (j >= 0 && a[j] > most) most = a[j];`` in a loop, which then is an extreme of those there.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Assign, Binary, Call, Expr, Name, Step, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import loops_in, names
from optiml_magic.kernels.primitives.mapped import joined_test, split_test
from optiml_magic.kernels.symbols import THREADS
from optiml_magic.kernels.tree import Block, Evaluate, If, Statement, only_leaves, walk


@primitive
def asked_apart(kernel: Kernel) -> Kernel:
    """The kernel with what such tests ask of memory in branches of their own; it has one."""
    body = kernel.function.body
    loads = {a.own for a in kernel.reading.accesses if a.mode != "store" and a.space == "global"}
    guards = {g.test for g in kernel.reading.guards if g.condition.depends & {*THREADS}}
    rounds = {s for loop in loops_in(body) for s in walk(loop)}
    swaps: dict[Node, Node | tuple[Statement, ...]] = {}
    for branch in (s for s in walk(body) if isinstance(s, If)):
        if branch.other is not None or branch.before is not None or branch.constant:
            continue
        leaves = only_leaves(branch.then, "return")
        op = "||" if leaves else "&&"
        parts = [*split_test(branch.test, op)]
        if branch in rounds:
            first = len(parts) - 1 if _selects(branch, parts) else 0
        else:
            first = len([*takewhile(lambda part: not _asks(part, loads), parts)])
            first = first if branch in body.body and branch.test in guards else 0
        if not 0 < first < len(parts):
            continue
        inner = If(None, branch.line, joined_test(parts[first:], op), branch.then)
        then = branch.then if leaves else Block(None, 0, (inner,))
        own = If(None, branch.line, joined_test(parts[:first], op), then)
        swaps[branch] = (own, inner) if leaves else own
    if not swaps:
        raise NotLegal("no test asks memory beside whether an item is there")
    return kernel.rewritten(edited(body, swaps))


def _selects(branch: If, parts: list[Expr]) -> bool:
    """Whether the last part of a test compares with the local that is assigned then, it alone."""
    inside = branch.then.body if isinstance(branch.then, Block) else (branch.then,)
    *others, last = parts
    match inside, last:
        case (Evaluate(expression=Assign(op="=", target=Name(variable=own))),), Binary(
            op="<" | "<=" | ">" | ">="
        ):
            return own in names([last]) and own not in names(others)
    return False


def _asks(part: Expr, loads: Collection[Expr]) -> bool:
    """Whether a part of a test loads, or does more than compare."""
    return any(e in loads or isinstance(e, Call | Assign | Step) for e in every(part))
