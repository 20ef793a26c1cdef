"""Branches that select an extreme under another test: each test is a branch of its own.

``if (!taken && v > m) { m = v; at = j; }`` is ``if (!taken) if (v > m) { ... }``, so that the
extreme is seen. The comparison may stand before the other test where that only asks for locals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.combining import selection
from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import (
    Binary,
    Expr,
    Literal,
    Name,
    Unary,
    conjuncts,
    every,
)
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.mapped import joined_test
from optiml_magic.kernels.tree import Block, If, walk


@primitive
def own_tests(kernel: Kernel) -> Kernel:
    """The kernel with such branches in its loops as two each; it has some."""
    inside = {s for loop in loops_in(kernel.function.body) for s in walk(loop.body)}
    swaps: dict[Node, Node] = {}
    for branch in (s for s in inside if isinstance(s, If)):
        made = _parted(branch)
        if made is not None:
            swaps[branch] = made
    if not swaps:
        raise NotLegal("no extreme is selected under another test")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def _parted(branch: If) -> If | None:
    """A branch on all but the comparison around one on that; None for any other branch."""
    if branch.other is not None or branch.before is not None or branch.constant:
        return None
    parts = [*conjuncts(branch.test)]
    for at, part in enumerate(parts) if len(parts) > 1 else ():
        selects = If(None, branch.line, part, branch.then)
        rest, behind = [*parts[:at], *parts[at + 1 :]], parts[at + 1 :]
        if selection(selects) is None or not _only_asks(behind):
            continue
        then = Block(None, branch.line, (selects,))
        return replace(branch, span=None, head=None, test=joined_test(rest, "&&"), then=then)
    return None


def _only_asks(parts: Sequence[Expr]) -> bool:
    """Whether parts of a test may be asked whatever those before them say."""
    return all(
        isinstance(e, Name | Literal)
        or (isinstance(e, Unary) and e.op in "!-~")
        or (isinstance(e, Binary) and e.op not in ("/", "%", "<<", ">>", ","))
        for part in parts for e in every(part)
    )  # fmt: skip
