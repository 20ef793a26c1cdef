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
from optiml_magic.kernels.primitives.waits import is_barrier
from optiml_magic.kernels.ranges import Ranges
from optiml_magic.kernels.reading import Access, Axis
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
        if check_rounds(kernel, effects, axis, axis.node):
            raise NotLegal("its rounds may meet in memory", axis.line)
        assert axis.node.update is not None
        assert axis.variable is not None
        counter = Name(None, axis.variable.name, axis.variable)
        swaps[axis.node.update] = Assign(None, "+=", counter, text(str(threads)))
    _check_meetings(kernel, effects, loops, width)
    _check_beside(kernel, effects, loops, width)
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


def _check_meetings(kernel: Kernel, effects: Effects, loops: Collection[Axis], width: int) -> None:
    """Raise NotLegal where rounds of a thread may meet in memory, of one loop or of two.

    Threads do not meet from one barrier to the next, so elements are apart that are no whole
    number of rounds from each other; what a thread alone had in several rounds, several have now.
    """
    found = [(a, _place(a, axis, width)) for axis in loops for a in kernel.reading.accesses
             if a.space != "local" and a.own in effects.inside(axis.node)]  # fmt: skip
    for store, at in found:
        for other, beside in found if store.mode != "load" else ():
            if not _same(effects, store, other) or store.mode == other.mode == "atomic":
                continue
            if _waits_between(kernel, effects, store, other):
                continue
            if at is None or beside is None or at[0] != beside[0]:
                raise NotLegal("its rounds may meet in memory", store.line)
            apart = (beside[1] - at[1]).value
            if apart is None or (apart and apart % (at[0] * width) == 0):
                raise NotLegal("its rounds may meet in memory", store.line)


def _waits_between(kernel: Kernel, effects: Effects, one: Access, other: Access) -> bool:
    """Whether a barrier stands among the kernel's own statements between two accesses."""
    body = kernel.function.body.body
    places = [[at for at, s in enumerate(body) if a.own in effects.inside(s)] for a in (one, other)]
    if any(len(found) != 1 for found in places):
        return False
    (low,), (high,) = sorted(places)
    return any(is_barrier(statement) for statement in body[low:high])


def _place(access: Access, axis: Axis, width: int) -> tuple[int, Polynomial] | None:
    """An element as ``by * item + rest``, the first of these a number; None where it is not."""
    by = access.index and access.index.coefficient(_THREAD)
    if access.index is None or by is None or not by.value:
        return None
    item = Polynomial.symbol(_THREAD) + Polynomial.constant(width) * Polynomial.symbol(axis.name)
    rest = access.index - item * by
    return None if {_THREAD, axis.name} & rest.symbols else (by.value, rest)


def _same(effects: Effects, one: Access, other: Access) -> bool:
    """Whether two arrays may be one."""
    shared = "shared" in (one.space, other.space)
    return one.array == other.array if shared else effects.same(one.array, other.array)


def _check_beside(kernel: Kernel, effects: Effects, loops: Collection[Axis], width: int) -> None:
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
        at = access.index.value if access.index is not None else None
        if access.space == "shared" and at is not None and at >= width:
            _check_alone(kernel, effects, loops, access, at)


def _check_alone(
    kernel: Kernel, effects: Effects, loops: Collection[Axis], access: Access, at: int
) -> None:
    """Raise NotLegal where an element that one thread touches is an item that it may have had."""
    for axis in loops:
        known, inside = Ranges(axis.guard, kernel.reading.symbols), effects.inside(axis.node)
        own = any(a.array == access.array and a.own in inside for a in kernel.reading.accesses
                  if a.mode != "load" or access.mode != "load"
                  if not _waits_between(kernel, effects, a, access))  # fmt: skip
        assert axis.stop is not None
        if own and not known.nonnegative(Polynomial.constant(at) - axis.stop):
            raise NotLegal("a thread asks for an item that is another's then", access.line)


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
