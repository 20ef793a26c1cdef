"""P17, stopped: a loop that leaves the kernel ends, and the kernel is left behind it.

``for (...) if (c) return;`` is a search whose threads have nothing more to do once they have found
something. Whoever lets a thread go on with another item, or with what its block does together,
needs the loop to end like others.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import outermost
from optiml_magic.kernels.tree import Blank, Block, Leave, Loop, Statement, walk


@primitive
def stopped(kernel: Kernel) -> Kernel:
    """The kernel with no way out of it within a loop."""
    body = kernel.function.body
    flags = list[str]()
    hints = {
        behind: hint
        for block in walk(body)
        if isinstance(block, Block)
        for hint, behind in zip(block.body, block.body[1:], strict=False)
        if isinstance(hint, Blank)
    }
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for loop in outermost(body):
        if _returns(loop):
            left = kernel.fresh("left", *flags)
            flags.append(left)
            declared, hint = lines(f"bool {left} = false;"), hints.get(loop)
            first = (declared,) if hint is None else (declared, hint)
            if hint is not None:
                swaps[hint] = None
            swaps[loop] = (*first, _ending(loop, left), lines(f"if ({left}) return;"))
    if not swaps:
        raise NotLegal("no loop leaves the kernel")
    return kernel.rewritten(edited(body, swaps))


def _ending(loop: Loop, left: str) -> Statement:
    """A loop that notes that the kernel is to be left, and ends."""
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
    for inner in outermost(loop.body):
        if _returns(inner):
            swaps[inner] = (_ending(inner, left), lines(f"if ({left}) break;"))
    apart = {s for inner in outermost(loop.body) for s in walk(inner)}
    for way in _returns(loop):
        if way not in apart:
            swaps[way] = (lines(f"{left} = true;"), lines("break;"))
    return edited(loop, swaps)


def _returns(statement: Statement) -> list[Leave]:
    return [s for s in walk(statement) if isinstance(s, Leave) and s.kind == "return"]
