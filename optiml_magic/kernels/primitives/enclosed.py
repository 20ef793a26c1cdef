"""Rounds that leave out what is behind a test, as branches that enclose it.

``for (j) { if (outside) continue; rest }`` is ``for (j) { if (!outside) { rest } }``, which steps
that look for what is done under a test find.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Expr, Unary
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.hoisted import conjuncts
from optiml_magic.kernels.primitives.mapped import joined_test
from optiml_magic.kernels.primitives.scopes import asks
from optiml_magic.kernels.tree import Block, If, Statement, only_leaves


@primitive
def enclosed(kernel: Kernel) -> Kernel:
    """The kernel without branches of a round that do nothing but to go on with the next one."""
    return _without(kernel, lambda _: True)


@primitive
def enclosed_by_memory(kernel: Kernel) -> Kernel:
    """The kernel without those that memory tells to go on: ``if (row[k] < 0) continue;``."""
    effects = Effects(kernel)
    return _without(kernel, lambda test: asks(effects, test))


def _without(kernel: Kernel, chosen: Callable[[Expr], bool]) -> Kernel:
    swaps: dict[Node, Node] = {}
    for loop in reversed(loops_in(kernel.function.body)):  # the inner ones first
        if isinstance(loop.body, Block):
            left = _enclosed(kernel, loop.body.body, swaps, chosen)
            if left is not None:
                swaps[loop.body] = Block(None, loop.line, left)
    if not swaps:
        raise NotLegal("no round leaves out what is behind a test")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _enclosed(
    kernel: Kernel, statements: Sequence[Statement], swaps: dict[Node, Node],
    chosen: Callable[[Expr], bool],
) -> tuple[Statement, ...] | None:  # fmt: skip
    for at, statement in enumerate(statements):
        match statement:
            case If(before=None, constant=False, test=test, then=then, other=None):
                rest = statements[at + 1 :]
                if not rest or not only_leaves(then, "continue") or not chosen(test):
                    continue
                within = _enclosed(kernel, rest, swaps, chosen)
                if within is None:
                    within = tuple(edited(one, swaps) for one in rest)
                whole = Block(None, rest[0].line, within)
                unless = joined_test(conjuncts(kernel, Unary(None, "!", test)), "&&")
                before = (edited(one, swaps) for one in statements[:at])
                return (*before, If(None, statement.line, unless, whole))
    return None
