"""Braces that stand by themselves are opened: what is in them stands beside what is around them.

A local of theirs gets another name where the rest of the kernel has that name too.
"""

from __future__ import annotations

import re

from optiml_magic.kernels.editing import edited
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.unshadowed import renaming
from optiml_magic.kernels.tree import (
    Block,
    Declare,
    Variable,
    Verbatim,
    walk,
)

_WORD = re.compile(r"[A-Za-z_]\w*")


@primitive
def opened(kernel: Kernel) -> Kernel:
    """The kernel without braces that no branch and no loop has."""
    body = kernel.function.body
    found = [s for b in walk(body) if isinstance(b, Block) for s in b.body if isinstance(s, Block)]
    if not found:
        raise NotLegal("no braces stand by themselves")
    for leaf in walk(body):
        if isinstance(leaf, Verbatim):
            raise NotLegal(f"{leaf.reason} is not read", leaf.line)
    block = next(b for b in found if not any(c in found for s in b.body for c in walk(s)))
    own = [v for s in block.body if isinstance(s, Declare) for v in s.variables]
    rest = set(_WORD.findall(kernel.show(edited(body, {block: ()}))))
    rest |= {p.name for p in kernel.function.parameters}
    new: dict[Variable, str] = {}
    for variable in own:
        if variable.name in rest:
            new[variable] = kernel.fresh(variable.name, *new.values())
    swaps = renaming(block, new)
    inside = tuple(edited(s, swaps) for s in block.body)
    made = kernel.rewritten(edited(body, {block: inside}))
    more = opened(made)
    return more if isinstance(more, Kernel) else made
