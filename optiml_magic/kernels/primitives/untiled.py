"""What tiles leave behind where nobody brings them any more, made as plain as a naive kernel.

Loops over tiles and within one become one loop that ends where its elements do; rows that threads
took one after the other become threads; blocks lie along the axes of their threads.
"""

from __future__ import annotations

from functools import partial

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Call, every
from optiml_magic.kernels.primitives.aligned import straightened
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive, where_legal
from optiml_magic.kernels.primitives.coarser import coarser
from optiml_magic.kernels.primitives.collapsed import nested
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.dispersed import item_a_thread
from optiml_magic.kernels.primitives.effects import Effects, is_counted, is_simple, loops_in
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.rejoined import rejoined
from optiml_magic.kernels.primitives.trimmed import trimmed, whole
from optiml_magic.kernels.primitives.uncoarsened import uncoarsened
from optiml_magic.kernels.primitives.unnested import unnested
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Blank, Block, Loop, walk

BARRIER = "__syncthreads"


def untiled(kernel: Kernel) -> Kernel:
    """The kernel after all of these steps that apply."""
    for step in (
        rejoined, coarser, item_a_thread, whole, _bare, _in_rounds,
        partial(unnested, whole=True), trimmed, uncoarsened, straightened, pruned,
    ):  # fmt: skip
        kernel = where_legal(step, kernel)
    return kernel


def turning(kernel: Kernel) -> Kernel:
    """With the loops that threads wait in counted by their rounds, where they can be.

    Pointers that go from tile to tile are elements of their arrays then.
    """
    for at, loop in enumerate(loops_in(kernel.function.body)):
        inside = [e for s in walk(loop.body) for top in s.expressions for e in every(top)]
        if any(isinstance(e, Call) and e.function == BARRIER for e in inside):
            made = as_counted(kernel, at, counts_alone)
            kernel = made if isinstance(made, Kernel) else kernel
    return kernel


def counts_alone(axis: Axis, effects: Effects) -> bool:
    """Whether a loop counts in its head, and no pointer goes on in it."""
    moved = any(v.type.depth for v in effects.changed(axis.node.body))
    return is_counted(axis, effects) and not moved


@primitive
def _bare(kernel: Kernel) -> Kernel:
    """Without what says how to unroll a loop that is all that the loop around it does."""
    hints: dict[Node, None] = {
        s.body.body[0]: None
        for s in loops_in(kernel.function.body)
        if isinstance(s.body, Block) and len(s.body.body) == 2  # with its loop
        and isinstance(s.body.body[0], Blank) and s.body.body[0].hints
        and isinstance(s.body.body[1], Loop)
    }  # fmt: skip
    if not hints:
        raise NotLegal("nothing says how to unroll a loop in a loop")
    return kernel.rewritten(edited(kernel.function.body, hints))


@primitive
def _in_rounds(kernel: Kernel) -> Kernel:
    """With loops around others alone counted by their rounds, not by the elements of a tile."""
    found = kernel
    for at, loop in enumerate(loops_in(kernel.function.body)):
        if any(nested(loop)):
            made = as_counted(found, at, is_simple)
            found = made if isinstance(made, Kernel) else found
    return found
