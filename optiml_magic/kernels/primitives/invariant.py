"""P13, hoist: what a loop computes alike in all of its rounds is computed before it.

A compiler moves what it may compute in vain, which a function with a branch or a slow path is not.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.expressions import Expr, Literal, every
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.primitives.tabulated import Still, named_after
from optiml_magic.kernels.tree import Loop, Statement, walk


def invariants(kernel: Kernel, loop: Loop, effects: Effects) -> list[tuple[Expr, str, str]]:
    """Functions and quotients that are the same in all rounds, their types, and names for them."""
    still = Still(kernel, loop, effects)
    found: list[tuple[Expr, str, str]] = []
    for statement in walk(loop.body):
        for top in statement.expressions:
            for node in _largest(still, top):
                kind = still.kind(node)
                if kind is not None and not still.made_of(node):
                    found.append((node, kind.name, named_after(statement, node)))
    return found


def repeating(kernel: Kernel) -> tuple[int, ...]:
    """The loops with something to compute before them, by number, outer ones first."""
    effects = Effects(kernel)
    return tuple(
        at
        for at, loop in enumerate(loops_in(kernel.function.body))
        if invariants(kernel, loop, effects)
    )


@primitive
def computed_before(kernel: Kernel, at: int) -> Kernel:
    """What is the same in all rounds of the loop with this number is a local before it."""
    loop = loops_in(kernel.function.body)[at]
    found = invariants(kernel, loop, Effects(kernel))
    if not found:
        raise NotLegal("its rounds compute nothing alike that takes long", loop.line)
    known: dict[tuple[str, str], str] = {}
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for node, kind, hint in found:
        words = kernel.spelled(node)
        name = known.setdefault((kind, words), kernel.fresh(hint, *known.values()))
        swaps[node] = text(name)
    above = [lines(f"const {kind} {name} = {words};") for (kind, words), name in known.items()]
    hints = hints_of(kernel, loop)
    told = [lines(kernel.show(hint).strip()) for hint in hints]
    whole: dict[Node, Node | tuple[Statement, ...] | None] = dict.fromkeys(hints)
    whole[loop] = (*above, *told, edited(loop, swaps))
    return kernel.rewritten(edited(kernel.function.body, whole))


def _largest(still: Still, expr: Expr) -> Iterator[Expr]:
    constant = all(isinstance(part, Literal) or part.parts for part in every(expr))
    if still.steady(expr) and still.costly(expr) and not constant:
        yield expr
    else:
        for part in expr.parts:
            yield from _largest(still, part)
