"""What tiles leave behind where nobody brings them any more, made as plain as a naive kernel.

Loops over tiles and within one become one loop that ends where its elements do; rows that threads
took one after the other become threads; blocks lie along the axes of their threads.
"""

from __future__ import annotations

from optiml_magic.kernels.editing import Node, edited
from optiml_magic.kernels.expressions import Call, every
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.axes import BLOCKS, exchanged
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, primitive, where_legal
from optiml_magic.kernels.primitives.collapsed import nested
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.places import index
from optiml_magic.kernels.primitives.pruned import pruned
from optiml_magic.kernels.primitives.trimmed import trimmed, whole
from optiml_magic.kernels.primitives.uncoarsened import uncoarsened
from optiml_magic.kernels.primitives.unnested import unnested
from optiml_magic.kernels.tree import Blank, Block, Loop, walk

BARRIER = "__syncthreads"


def untiled(kernel: Kernel) -> Kernel:
    """The kernel after all of these steps that apply."""
    for step in (whole, _bare, _in_rounds, unnested, trimmed, uncoarsened, _straight, pruned):
        kernel = where_legal(step, kernel)
    return kernel


def turning(kernel: Kernel) -> Kernel:
    """With the loops that threads wait in counted by their rounds, where they can be."""
    for at, loop in enumerate(loops_in(kernel.function.body)):
        inside = [e for s in walk(loop.body) for top in s.expressions for e in every(top)]
        if any(isinstance(e, Call) and e.function == BARRIER for e in inside):
            made = as_counted(kernel, at)
            kernel = made if isinstance(made, Kernel) else kernel
    return kernel


@primitive
def _straight(kernel: Kernel) -> Kernel:
    """With blocks along the axes of their threads, where each met the other's in a tile."""
    forms = [a.index for a in kernel.reading.accesses if a.space == "global"]
    if kernel.reading.barriers or any(form is None for form in forms):
        raise NotLegal("its threads wait for each other")
    known = [form for form in forms if form is not None]
    if all(_along(kernel, form, turned=False) for form in known):
        raise NotLegal("its blocks lie along the axes of their threads")
    if not all(_along(kernel, form, turned=True) for form in known):
        raise NotLegal("its blocks lie along no axis of their threads")
    made = exchanged(kernel, "x", "y", BLOCKS)
    if isinstance(made, Refused):
        raise NotLegal(made.reason, made.line)
    return made


def _along(kernel: Kernel, form: Polynomial, *, turned: bool) -> bool:
    """Whether a form has nothing of a thread but its index in the grid along each axis."""
    found: Polynomial | None = form
    names = ("blockIdx.x", "blockIdx.y")
    if turned:
        swapped = dict(zip(names, names[::-1], strict=True))
        found = Polynomial.of({
            tuple(sorted(swapped.get(n, n) for n in m)): c for m, c in form.terms
        })  # fmt: skip
    for axis, width in zip("xy", kernel.block, strict=False):
        found = index(found, axis, width) if found is not None and width else None
    return found is not None


@primitive
def _bare(kernel: Kernel) -> Kernel:
    """Without what says how to unroll a loop that is all that the loop around it does."""
    hints: dict[Node, None] = {
        s.body.body[0]: None
        for s in loops_in(kernel.function.body)
        if isinstance(s.body, Block) and len(s.body.body) == 2  # with its loop
        and isinstance(s.body.body[0], Blank) and isinstance(s.body.body[1], Loop)
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
