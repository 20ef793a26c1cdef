"""P9, keep in a register: what a thread that works alone adds to in shared memory, round by round.

``if (threadIdx.x == 0) for (...) total += part[j];`` becomes a sum in a local of its own, stored
behind the loop: nobody else looks at it meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines, text
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.effects import Effects
from optiml_magic.kernels.reading import Access, Axis
from optiml_magic.kernels.tree import Block, Loop, Statement

_ONE = Polynomial.constant(1)


def held_alone(kernel: Kernel, scope: Block, loops: list[Loop]) -> Block:
    """A scope that one thread comes to, in which loops hold such elements in locals."""
    effects, axes = Effects(kernel), kernel.axes()
    changes: dict[Node, tuple[Statement, ...]] = {}
    taken = list[str]()
    for loop in loops:
        axis = axes.get(loop)
        if axis is None or not axis.exact:
            continue
        swaps, before, after = dict[Node, Node](), list[str](), list[str]()
        inside = effects.inside(loop)
        shared = [a for a in kernel.reading.accesses if a.own in inside and a.space == "shared"]
        for held in _held(axis, shared):
            taken.append(name := kernel.fresh(f"{held[0].array}_own".replace(".", "_"), *taken))
            there = kernel.spelled(held[0].place)
            before.append(f"{held[0].element.name} {name} = {there};")
            after.append(f"{there} = {name};")
            swaps |= {access.place: text(name) for access in held}
        if swaps:
            changes[loop] = (*map(lines, before), edited(loop, swaps), *map(lines, after))
    return edited(scope, changes) if changes else scope


def _held(axis: Axis, shared: list[Access]) -> Iterator[list[Access]]:
    """The accesses to one element each that the rounds of a loop store to."""
    places = dict.fromkeys(
        (a.array, a.index.value) for a in shared
        if a.mode == "store" and a.index is not None and a.index.value is not None
    )  # fmt: skip
    for array, at in places:
        own = [
            a for a in shared if a.array == array and a.index is not None and a.index.value == at
        ]
        others = [a for a in shared if a.array == array and a not in own]
        plain = all(a.call is None and a.element.lanes == 1 and a.mode != "atomic" for a in own)
        if array and plain and at is not None and all(_beyond(axis, a, at) for a in others):
            yield own


def _beyond(axis: Axis, access: Access, at: int) -> bool:
    """Whether all rounds touch elements behind this one."""
    if access.index is None or axis.start is None or axis.step is None:
        return False
    if access.index.coefficient(axis.name) != _ONE or (axis.step.value or 0) < 1:
        return False
    first = (access.index.without([axis.name]) + axis.start).value
    return first is not None and first > at
