"""Rows: loops whose rounds take neighbouring elements, while neighbouring threads' lie apart."""

from __future__ import annotations

from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Loop


def rows(kernel: Kernel) -> tuple[Axis, ...]:
    """The outermost loops that walk along rows, each thread along its own.

    Raises NotLegal where there are some that nothing may be moved across.
    """
    axes, effects = kernel.axes(), Effects(kernel)
    found: list[Axis] = []
    inside: set[Loop] = set()
    for loop in loops_in(kernel.function.body):
        axis = axes.get(loop)
        if loop in inside or axis is None:
            continue
        if any(along(kernel, axis, access) for access in effects.accesses(loop)):
            found.append(axis)
            inside |= set(loops_in(loop.body))
    if found:
        effects.straightforward()
    for axis in found:
        if not axis.exact:
            raise NotLegal(f"the loop has another way out: {axis.reason}", axis.line)
    return tuple(found)


def along(kernel: Kernel, axis: Axis, access: Access) -> bool:
    """Whether the rounds take neighbouring elements, and the threads such that lie apart."""
    form, size = access.offset, access.element.size
    by = form.coefficient(axis.name) if form is not None else None
    if form is None or by is None or not size or by.value not in (size, -size):
        return False
    symbols = kernel.reading.symbols
    thread = form.coefficient("threadIdx.x")
    near = thread is not None and thread.value is not None and abs(thread.value) <= size
    return "threadIdx.x" in symbols.inside(form.without([axis.name])) and not (
        near and thread is not None and thread.terms
    )
