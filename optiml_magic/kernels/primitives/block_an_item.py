"""P3, items of a block: blocks that take several, a grid apart, as a block for each.

``for (b = blockIdx.x; b < n; b += gridDim.x) {...}`` around all that a block does spared launching
more blocks. With one for each item the loop is gone, and what a block does in shared memory, behind
its barriers, stands where other steps look for it.

A round asks for nothing that the rounds before left: locals are its own, and shared memory, which
the first round of each block finds without values, is given them anew. Blocks take their items at
the same time already, in an order that nobody knows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Expr, Name, builtin, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import every_place_read
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted
from optiml_magic.kernels.primitives.grids import said, said_alike
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.spelling import Unspelled
from optiml_magic.kernels.tree import (
    Blank,
    Block,
    Declare,
    Leave,
    Loop,
    Statement,
    Variable,
    expressions,
    walk,
)
from optiml_magic.source.expressions import Expression, Number, parse_expression

_PLACE, _BLOCKS = "blockIdx.x", "gridDim.x"


@primitive
def block_an_item(kernel: Kernel) -> Kernel:
    """The kernel with as many blocks as items, one for each."""
    body = [s for s in kernel.function.body.body if not isinstance(s, Blank)]
    loop = body[-1] if body else None
    axis = kernel.axes().get(loop) if isinstance(loop, Loop) else None
    if not isinstance(loop, Loop) or axis is None or not isinstance(loop.before, Declare):
        raise NotLegal("a loop over items is not all that a block does")
    effects = Effects(kernel)
    count = _count(kernel, effects, axis)
    _check_alone(kernel, effects, body[:-1], loop)
    (variable,) = loop.before.variables
    assert variable.value is not None
    first = f"{loop.before.words} {variable.name} = {kernel.spelled(variable.value)};"
    inside = loop.body.body if isinstance(loop.body, Block) else (loop.body,)
    made = lines("\n".join([first, *(kernel.show(s) for s in inside)]))
    swaps: dict[Node, Node | tuple[Statement, ...] | None] = {
        s: () for s in kernel.function.body.body if isinstance(s, Blank)
    }
    swaps[loop] = made
    launch = replace(kernel.launch, grid=(count, *kernel.launch.grid[1:]))
    return with_grid(kernel.rewritten(edited(kernel.function.body, swaps), launch=launch))


def _count(kernel: Kernel, effects: Effects, axis: Axis) -> Expression:
    """How many items there are, in the words of the launch."""
    start, step, stop = axis.start, axis.step, axis.stop
    if start is None or step is None or stop is None or not axis.exact or axis.scaled:
        raise NotLegal("how many items there are is not followed", axis.line)
    each = start.coefficient(_PLACE)
    by = each.value if each is not None else None
    if each is None or by is None or by < 1 or not is_counted(axis, effects):
        raise NotLegal("its rounds are not those of a block's items", axis.line)
    if start != each * Polynomial.symbol(_PLACE) or step != each * Polynomial.symbol(_BLOCKS):
        raise NotLegal("its rounds are not those of a block's items", axis.line)
    sizes = {p.name for p in kernel.function.parameters if not p.type.depth} - effects.moved
    try:
        words = said(kernel, stop)
    except Unspelled:
        raise NotLegal("how many items there are is not followed", axis.line) from None
    count = parse_expression(words if by == 1 else f"({words} + {by - 1}) / {by}")
    known = bool(count.names) and count.names <= sizes | {*kernel.program.values}
    alone = kernel.launch.grid[0].tree == Number(1)  # then rounds have an order
    if not known or alone or not said_alike(kernel, count.names):
        raise NotLegal("how many items there are the launch does not know", axis.line)
    return count


def _check_alone(
    kernel: Kernel, effects: Effects, ahead: Sequence[Statement], loop: Loop
) -> None:  # fmt: skip
    """That rounds ask for nothing which others leave, nor for which blocks there are."""
    own_text_only(kernel)
    every_place_read(kernel)
    of_block = set[Variable]()  # what is named ahead, and differs from block to block
    names = set[str]()
    for statement in ahead:
        if not isinstance(statement, Declare) or any(
            a.mode != "load" or a.space == "shared" for a in effects.accesses(statement)
        ):
            raise NotLegal("more is done before its items than to name numbers", statement.line)
        for variable in statement.variables:
            names.add(variable.name)
            value = variable.value
            if value is not None and any(_tells(e, of_block) for e in every(value)):
                of_block.add(variable)
    if any(_tells(e, of_block) for e in expressions(loop.body)):
        raise NotLegal("it asks for more of its blocks than their items", loop.line)
    own = {v for s in walk(loop.body) if isinstance(s, Declare) for v in s.variables}
    if not effects.changed(loop.body).keys() <= own or any(v.storage == "static" for v in own):
        raise NotLegal("a round goes on with what others left", loop.line)
    inner = [s.body for s in walk(loop.body) if isinstance(s, Loop)]
    ends = {s for body in inner for s in walk(body) if isinstance(s, Leave)}
    for leave in (s for s in walk(loop.body) if isinstance(s, Leave)):
        if leave.kind == "return" or leave not in ends:
            raise NotLegal("a round may be left", leave.line)
    names |= {p.name for p in kernel.function.parameters}
    if any(v.name in names for v in own):
        raise NotLegal("a name means another thing within its rounds", loop.line)


def _tells(expr: Expr, of_block: Collection[Variable]) -> bool:
    """Whether it says which block this is, or how many there are."""
    named = isinstance(expr, Name) and expr.variable in of_block
    return named or builtin(expr) in (_PLACE, _BLOCKS)
