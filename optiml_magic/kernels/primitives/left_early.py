"""``if (i >= n) return; else ...``: what is done else stands behind the way out."""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.tree import Blank, Block, If, Statement, only_leaves, walk

_KINDS = ("return", "continue", "break")


@primitive
def left_early(kernel: Kernel) -> Kernel:
    """The kernel without an ``else`` behind a branch that only leaves; it has one."""
    swaps: dict[Node, Node | tuple[Statement, ...]] = {}
    for scope in walk(kernel.function.body):
        for at, branch in enumerate(scope.body if isinstance(scope, Block) else ()):
            if not isinstance(branch, If) or branch.other is None or branch.before is not None:
                continue
            if branch.constant or not any(only_leaves(branch.then, kind) for kind in _KINDS):
                continue
            assert isinstance(scope, Block)
            last = all(isinstance(s, Blank) for s in scope.body[at + 1 :])
            other = branch.other
            rest = other.body if last and isinstance(other, Block) else (other,)
            swaps[branch] = (replace(branch, other=None, middle=None, span=None), *rest)
            break  # what is in it, the next time
    if not swaps:
        raise NotLegal("no branch that only leaves has an `else`")
    made = kernel.rewritten(edited(kernel.function.body, swaps))
    again = left_early(made)
    return again if isinstance(again, Kernel) else made
