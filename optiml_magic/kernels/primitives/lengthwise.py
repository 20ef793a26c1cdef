"""P4, lengthwise: a grid with too many blocks along y or z has these along x.

Along y and z a grid has 65,535 blocks at most, along x 2^31 - 1. Where a step puts the long axis of
a problem along y, blocks are numbered the other way round; the threads within them stay. What steps
asked of a launch in between nobody needs any longer where the last one has fewer blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from optiml_magic.kernels.primitives.axes import BLOCKS, exchanged
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.primitives.limits import MOST_BLOCKS, limit, limits
from optiml_magic.source.directives import RequireDirective
from optiml_magic.source.expressions import Binary, Call, Number


def lengthwise(kernel: Kernel, before: Kernel) -> Iterator[Kernel]:
    """The kernel that asks for what its launch needs alone, and with y or z of its grid along x.

    It comes of the kernel ``before``, and is the only one of the program that did change. Raises
    NotLegal where there is no such kernel.
    """
    others = [str(one) for one in kernel.program.launches if str(one) != str(kernel.launch)]
    own = [str(one) for one in before.program.launches if str(one) != str(before.launch)]
    if others != own:
        raise NotLegal("more than one launch changes")
    plain = _plain(kernel, before)
    yield _asking(plain, before)
    try:
        Effects(kernel).nobody_waits()  # blocks begin in another order
    except NotLegal:
        return
    for axis, _ in zip("yz", kernel.launch.grid[1:], strict=False):
        turned = exchanged(plain, "x", axis, BLOCKS)
        if isinstance(turned, Kernel):
            yield _asking(_plain(turned, before), before)


def _plain(kernel: Kernel, before: Kernel) -> Kernel:
    """The kernel in a program that asks for no number of blocks that the one before does not."""
    program = kernel.program
    for require in kernel.program.requires:
        if require not in before.program.requires and _is_bound(kernel, require):
            program = program.without(require)
    return replace(kernel, program=program)


def _is_bound(kernel: Kernel, require: RequireDirective) -> bool:
    """Whether a requirement says how many blocks there are along y or z."""
    match require.condition.tree:
        case Binary("<=", Call("cdiv"), Number(value)) if value == MOST_BLOCKS:
            return True
    return any(limit(size).tree == require.condition.tree for size in kernel.launch.grid[1:])


def _asking(kernel: Kernel, before: Kernel) -> Kernel:
    """The kernel in a program that asks for what its launch needs."""
    made = kernel.program
    for require in limits(before, kernel.launch, made.tunes):
        if require not in made.requires:
            made = made.with_directive(require)
    found = next(one for one in made.launches if str(one) == str(kernel.launch))
    return replace(kernel, program=made, launch=found)
