"""P6 undone within a block: threads that take items a block apart become one thread an item.

``for (i = threadIdx.x; i < 512; i += 256)`` in every step of a block of 256 is what a block of 512
does, each thread with its own element, which rules for waiting blocks look for.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from optiml_magic.kernels.editing import Node, edited, text
from optiml_magic.kernels.expressions import (
    Assign,
    Binary,
    Expr,
    Literal,
    Name,
    Unary,
    builtin,
    every,
)
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import without_warps
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.block_rounds import dealt_out, first, row_of_threads
from optiml_magic.kernels.primitives.cutting import TOLD
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.places import bare, own_text_only
from optiml_magic.kernels.primitives.unstrided import check_rounds
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Declare, If, Variable, expressions, walk
from optiml_magic.source.expressions import parse_expression

_WIDEST = 1024  # threads of a block (CUDA C++ Programming Guide, "Compute Capabilities")
_THREAD, _WIDTH = "threadIdx.x", "blockDim.x"


@primitive
def widened(kernel: Kernel) -> Kernel:
    """The kernel in blocks of as many threads as items, where items are all that threads ask for.

    Tests for a single thread may stand beside these loops; a loop may have an item more.
    """
    loops, width = dealt_out(kernel), row_of_threads(kernel)
    threads = max((_threads(kernel, axis, width) for axis in loops), default=0)
    if threads <= width:
        raise NotLegal("no loop of its threads makes more than a round")
    effects = Effects(kernel)
    effects.straightforward(alone=False)
    without_warps(kernel)
    own_text_only(kernel)
    if kernel.reading.calls & set(TOLD):
        raise NotLegal("it prints")
    waiting = {name for barrier in kernel.reading.barriers for name in barrier.loops}
    swaps = dict[Node, Node]()
    for axis in loops:
        if axis.name in waiting:
            raise NotLegal("threads wait within a round", axis.line)
        check_rounds(kernel, effects, axis, axis.node)
        _check_shared(kernel, effects, axis, width)
        assert axis.node.update is not None
        assert axis.variable is not None
        counter = Name(None, axis.variable.name, axis.variable)
        swaps[axis.node.update] = Assign(None, "+=", counter, text(str(threads)))
    _check_beside(kernel, effects, loops)
    launch = replace(kernel.launch, block=(parse_expression(str(threads)),))
    bounds = str(threads) if kernel.function.launch_bounds else ""
    made = kernel.rewritten(edited(kernel.function.body, swaps), launch=launch, bounds=bounds)
    return replace(made, facts=kernel.facts and replace(kernel.facts, block=(threads, 1, 1)))


def _threads(kernel: Kernel, axis: Axis, width: int) -> int:
    """How many threads take its items in a round, but for one item more; 0 if these are not few."""
    known, stop = Ranges(axis.guard, kernel.reading.symbols), axis.stop
    assert stop is not None
    return next(
        (threads for threads in range(width, _WIDEST + 1, width)
         if known.nonnegative(first(axis) + Polynomial.constant(threads + 1) - stop)), 0,
    )  # fmt: skip


def _check_shared(kernel: Kernel, effects: Effects, axis: Axis, width: int) -> None:
    """Raise NotLegal where a thread's rounds may meet in shared memory.

    Threads do not meet from one barrier to the next, so elements are apart that are no whole
    number of rounds from each other.
    """
    inside = effects.inside(axis.node)
    accesses = [a for a in kernel.reading.accesses if a.space == "shared" and a.own in inside]
    for store in (a for a in accesses if a.mode != "load"):
        by = store.index and store.index.coefficient(_THREAD)
        for other in (a for a in accesses if a.array == store.array):
            if store.mode == other.mode == "atomic":
                continue
            if store.index is None or other.index is None or not by or not by.value:
                raise NotLegal("its rounds may meet in shared memory", store.line)
            apart = (other.index - store.index).value
            if apart is None or (apart and apart % (by.value * width) == 0):
                raise NotLegal("its rounds may meet in shared memory", store.line)


def _check_beside(kernel: Kernel, effects: Effects, loops: Collection[Axis]) -> None:
    """Raise NotLegal where more threads would do more, or know of it."""
    body = kernel.function.body
    places = _places(kernel, effects)
    lone = [s for s in walk(body) if isinstance(s, If) and _is_lone(s.test, places)]
    begun = [*places, *(axis.variable for axis in loops if axis.variable is not None)]
    told = [
        *(axis.node.update for axis in loops),
        *(s.test for s in lone),
        *(v.value for v in begun),
    ]
    fine = {part for expr in told if expr is not None for part in every(expr)}
    for expr in expressions(body):
        if expr not in fine and (builtin(expr) == _WIDTH or _is_thread(expr, places)):
            raise NotLegal("its threads ask for more than their items")
    alone = [*(axis.node for axis in loops), *(s.then for s in lone)]
    inside = frozenset[Expr]().union(*(effects.inside(s) for s in alone))
    for access in kernel.reading.accesses:
        if access.space != "local" and access.mode != "load" and access.own not in inside:
            raise NotLegal("each of its threads stores to the same element", access.line)


def _places(kernel: Kernel, effects: Effects) -> set[Variable]:
    """Locals that hold the number of their thread."""
    declared = {
        v for s in walk(kernel.function.body) if isinstance(s, Declare) for v in s.variables
    }
    return {v for v in declared - effects.changing if v.value is not None
            and builtin(bare(v.value)) == _THREAD}  # fmt: skip


def _is_thread(expr: Expr, places: Collection[Variable]) -> bool:
    return builtin(expr) == _THREAD or (isinstance(expr, Name) and expr.variable in places)


def _is_lone(test: Expr, places: Collection[Variable]) -> bool:
    """Whether a test holds for one thread of a block."""
    match test:
        case Binary(op="==", left=left, right=right):
            sides = (bare(left), bare(right))
            return any(isinstance(e, Literal) for e in sides) and any(
                _is_thread(e, places) for e in sides
            )
        case Unary(op="!", operand=operand):
            return _is_thread(bare(operand), places)
    return False
