"""Items that one block takes, or one thread, as the threads of a grid would take them.

A first kernel is launched as ``<<<1, 256>>>`` and steps by ``blockDim.x``, or as ``<<<1, 1>>>``
with a plain loop. In a grid of one block a thread's index in its block is that in the grid, and
the threads of a block are all there are: so this changes nothing by itself, but then ``unstrided``
sees a kernel for as many blocks as one likes.
"""

from __future__ import annotations

from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import Assign, Expr, Name, builtin, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.counted import counted
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Declare, Evaluate, Loop, Statement
from optiml_magic.kernels.types import named
from optiml_magic.source.expressions import parse_expression

_THREAD, _WIDTH = "threadIdx.x", "blockDim.x"
_STRIDE = "blockDim.x * gridDim.x"
_BLOCK = 256  # threads of a block for the items of one thread; ours
_FEW = 32  # items that one thread may keep: below a warp; ours
_WIDE = 8  # bytes


def gridwide(kernel: Kernel) -> Kernel:
    """The kernel whose last loop goes from a thread's index in the grid in steps of the grid.

    Raises NotLegal where the launch has several blocks along x, or the loop goes otherwise.
    """
    if str(kernel.launch.grid[0]) != "1" or kernel.launch.condition is not None:
        raise NotLegal("its threads do not step by the grid")
    if kernel.reading.barriers or kernel.launch.shared is not None:
        raise NotLegal("the threads of its block work together")
    if kernel.block == (1, 1, 1):
        kernel = _of_threads(kernel)
    *before, loop = kernel.function.body.body or (None,)
    axis = kernel.axes().get(loop) if isinstance(loop, Loop) else None
    if not isinstance(loop, Loop) or axis is None or loop.kind != "for" or loop.update is None:
        raise NotLegal("its last statement is not a loop over its items")
    width = _step(kernel, axis)
    counter = axis.variable
    if counter is None or counter.type.depth:
        raise NotLegal("its loop has no counter", loop.line)
    wide = (named(counter.type.base, kernel.unit.aliases).size or 0) >= _WIDE
    place = f"blockIdx.x * {'(long long)' if wide else ''}blockDim.x + threadIdx.x"
    swaps: dict[Node, Node] = {}
    for statement in (*before, loop.before):
        swaps |= _swapped(statement, place) if statement is not None else {}
    if not width:
        swaps[_beginning(axis, loop)] = text(place)
    swaps |= {loop.update: Assign(None, "+=", Name(None, counter.name, counter), text(_STRIDE))}
    block = (parse_expression(str(_BLOCK)), *kernel.launch.block[1:])
    made = kernel.rewritten(
        edited(kernel.function.body, swaps),
        launch=kernel.launch if width else replace(kernel.launch, block=block),
    )
    if width or kernel.facts is None:
        return made
    return replace(made, facts=replace(kernel.facts, block=(_BLOCK, 1, 1)))


def _step(kernel: Kernel, axis: Axis) -> int:
    """The threads of the block by which a loop steps; 0 where one thread takes all items."""
    width = kernel.block[0]
    step = axis.step.value if axis.step is not None else None
    if width is None or not axis.exact or axis.scaled or axis.start is None or step != width:
        raise NotLegal("its loop does not step by the threads of its block", axis.line)
    if kernel.block == (1, 1, 1):
        few = axis.stop is not None and (value(kernel, axis.stop) or _FEW) < _FEW
        if axis.start.value != 0 or few:
            raise NotLegal("its one thread takes few items", axis.line)
        return 0
    if axis.start != Polynomial.symbol(_THREAD):
        raise NotLegal("its loop does not begin at a thread's index", axis.line)
    return width


def _of_threads(kernel: Kernel) -> Kernel:
    """The kernel of one thread, its last loop counted from 0."""
    if kernel.function.launch_bounds:
        raise NotLegal("its launch bounds say how many threads a block has")
    loop = kernel.function.body.body[-1] if kernel.function.body.body else None
    axis = kernel.axes().get(loop) if isinstance(loop, Loop) else None
    if not isinstance(loop, Loop) or axis is None or Effects(kernel).kept(loop.body):
        raise NotLegal("its last statement is not a loop over its items")
    if loop.before is not None and axis.start is not None and axis.start.value == 0:
        return kernel
    made = counted(kernel, loops_in(kernel.function.body).index(loop))
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return made


def _swapped(statement: Statement, place: str) -> dict[Node, Node]:
    """What stands for a thread's index and for the threads of the block."""
    parts = (part for top in statement.expressions for part in every(top))
    new = {_THREAD: f"({place})", _WIDTH: f"({_STRIDE})"}
    return {e: text(new[builtin(e)]) for e in parts if builtin(e) in new}


def _beginning(axis: Axis, loop: Loop) -> Expr:
    """Where the counter of a loop is said to begin, at 0."""
    match loop.before:
        case Declare(variables=(own,)) if own is axis.variable and own.value is not None:
            return own.value
        case Evaluate(expression=Assign(op="=", target=Name(variable=own), value=first)):
            if own is axis.variable:
                return first
    raise NotLegal("where its loop begins is not said in its head", loop.line)
