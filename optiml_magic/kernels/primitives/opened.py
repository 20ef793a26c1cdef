"""Braces that stand by themselves are opened: what is in them stands beside what is around them.

A local of theirs gets another name where the rest of the kernel has that name too.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.unshadowed import renaming
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Statement,
    Variable,
    Verbatim,
    walk,
)

_WORD = re.compile(r"[A-Za-z_]\w*")


@primitive
def opened(kernel: Kernel) -> Kernel:
    """The kernel without braces that no branch and no loop has."""
    body = kernel.function.body
    found = _standing(kernel, body)
    if not found:
        raise NotLegal("no braces stand by themselves")
    for leaf in walk(body):
        if isinstance(leaf, Verbatim):
            raise NotLegal(f"{leaf.reason} is not read", leaf.line)
    called = _names(kernel, found)
    body = edited(body, renaming(body, called))
    swaps: dict[Node, tuple[Statement, ...]] = {}
    for block in reversed(_standing(kernel, body)):  # what is in braces before these
        swaps[block] = edited(block, swaps).body
    return kernel.rewritten(edited(body, swaps))


def _standing(kernel: Kernel, body: Block) -> list[Block]:
    return [
        s for b in walk(body) if isinstance(b, Block) for s in b.body
        if isinstance(s, Block) and not any(_names_a_type(kernel, one) for one in s.body)
    ]  # fmt: skip


def _names_a_type(kernel: Kernel, statement: Statement) -> bool:
    """Whether another type may have the name behind the braces: ``typedef int T;``."""
    if isinstance(statement, Declare):
        return "{" in statement.words
    blank = isinstance(statement, Blank) and not statement.hints
    return blank and bool(kernel.show(statement).strip(" ;\n"))


def _names(kernel: Kernel, found: Sequence[Block]) -> dict[Variable, str]:
    """Other names for the locals of braces whose names stand elsewhere too.

    Text is counted and not made anew for each pair of braces, of which there may be hundreds.
    """
    called: dict[Variable, str] = {}
    given = {p.name for p in kernel.function.parameters}
    own = set[str]()  # also of what has no words, such as what a switch asks about
    words = Counter(_WORD.findall(kernel.show(kernel.function.body)))
    for block in _innermost_first(found):
        inside = _words(kernel, block, called)
        rest = words - inside
        for statement in block.body:
            for variable in statement.variables if isinstance(statement, Declare) else ():
                if variable.name in rest or variable.name in given | own:
                    called[variable] = kernel.fresh(variable.name, *called.values(), *own)
                own.add(called.get(variable, variable.name))
        words = rest + _words(kernel, block, called)
    return called


def _words(kernel: Kernel, block: Block, called: dict[Variable, str]) -> Counter[str]:
    """The words of a pair of braces, and of what leads to it, where locals have these names."""
    shown = kernel.show(Block(None, 0, (block,)), renaming(block, called))
    return Counter(_WORD.findall(shown))


def _innermost_first(found: Sequence[Block]) -> Iterator[Block]:
    """In the order of the text, but for those that hold others."""
    left = dict.fromkeys(found)
    inner = {block: [s for s in walk(block) if s in left and s is not block] for block in found}
    while left:
        block = next(b for b in left if left.keys().isdisjoint(inner[b]))
        del left[block]
        yield block
