"""Normal form: the few rounds of a loop over a block's items are written out, a branch for each.

``for (i = threadIdx.x; i < 260; i += blockDim.x)`` in a block of 256 becomes a round of all threads
and one of the first four. Rules then see which element belongs to which thread. ``widened`` asks
for a thread an item first.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, outermost
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Leave, Statement, walk

_MOST = 4  # rounds; ours
_THREAD = "threadIdx.x"
_ONE = Polynomial.constant(1)


@primitive
def block_rounds(kernel: Kernel) -> Kernel:
    """The kernel without loops of its threads that make four rounds at most; it has some."""
    swaps = dict[Node, Node | tuple[Statement, ...] | None]()
    for axis in dealt_out(kernel):
        rounds = _rounds(kernel, axis)
        if rounds:
            swaps[axis.node] = tuple(lines(words) for words in rounds)
    if not swaps:
        raise NotLegal("no loop of its threads makes a few rounds")
    return kernel.rewritten(edited(kernel.function.body, swaps))


def row_of_threads(kernel: Kernel) -> int:
    """How many threads a block has, all of them along x."""
    width, *beside = kernel.block
    if width is None or beside != [1, 1]:
        raise NotLegal("its blocks are not rows of threads")
    return width


def dealt_out(kernel: Kernel) -> list[Axis]:
    """Loops without others in them that go from a thread's number in steps of its block."""
    effects, found = Effects(kernel), list[Axis]()
    step = Polynomial.constant(row_of_threads(kernel))
    for loop in loops_in(kernel.function.body):
        axis = kernel.axes().get(loop)
        if axis is None or axis.start is None or axis.step != step or axis.stop is None:
            continue
        alone = not any(outermost(loop.body)) and not any(isinstance(s, Leave) for s in walk(loop))
        if alone and first(axis).value is not None and axis.exact and is_counted(axis, effects):
            found.append(axis)
    return found


def first(axis: Axis) -> Polynomial:
    """The item that the first thread of a block begins with."""
    assert axis.start is not None
    return axis.start - Polynomial.symbol(_THREAD)


def _rounds(kernel: Kernel, axis: Axis) -> list[str]:
    """The rounds of a loop that makes four at most; else none."""
    loop, variable, stop, width = axis.node, axis.variable, axis.stop, row_of_threads(kernel)
    assert variable is not None
    assert variable.value is not None
    assert loop.test is not None
    assert stop is not None
    known = Ranges(axis.guard, kernel.reading.symbols)
    begin, test = (_shown(kernel, e) for e in (variable.value, loop.test))
    body, head = kernel.show_inside(loop.body), f"const {variable.type.base} {variable.name}"
    found = list[str]()
    for low in range(0, (_MOST + 1) * width, width):
        left = stop - first(axis) - Polynomial.constant(low)
        if known.nonnegative(-left):
            return found
        declared = f"{head} = {begin} + {low};" if low else f"{head} = {begin};"
        if known.nonnegative(left - Polynomial.constant(width)):
            found.append(f"{{\n{declared}\n{body}\n}}")
        elif left == _ONE and stop.value is not None:
            last = f"{head} = {stop.value - 1};"
            found.append(f"if ({_THREAD} == 0) {{\n{last}\n{body}\n}}")
        else:
            found.append(f"{{\n{declared}\nif ({test}) {{\n{body}\n}}\n}}")
    return []


def _shown(kernel: Kernel, expr: Expr) -> str:
    return kernel.spelled(expr)
