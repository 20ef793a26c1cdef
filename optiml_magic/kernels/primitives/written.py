"""P7, write out: the few rounds of a loop over planes or fields of an item, one after the other.

``for (k = 0; k < 4; ++k) g[k] = x[k * n + i];`` becomes four statements, and each plane is an array
of neighbouring elements by itself, which vectors may bring.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.editing import Node, edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, is_counted, loops_in, outermost
from optiml_magic.kernels.primitives.naming import declared_type
from optiml_magic.kernels.primitives.staged import hints_of
from optiml_magic.kernels.reading import Axis
from optiml_magic.kernels.tree import Block, Leave, Loop, Statement, walk

_MOST = 16  # rounds of a loop, and of those in each other; ours
_THREAD = "threadIdx.x"


@primitive
def written(kernel: Kernel) -> Kernel:
    """The kernel without short loops whose counter is part of where its items lie."""
    made = kernel
    while found := [*_outer(made)]:
        swaps: dict[Node, Node | tuple[Statement, ...] | None] = {}
        for loop in found:
            swaps |= dict.fromkeys(hints_of(made, loop))
            swaps[loop] = _copies(made, loop)
        made = made.rewritten(edited(made.function.body, swaps))
    if made is kernel:
        raise NotLegal("no short loop goes through planes or fields of its items")
    return made


def _outer(kernel: Kernel) -> Iterator[Loop]:
    """Such loops, those within others later."""
    effects, todo = Effects(kernel), [*outermost(kernel.function.body)]
    while todo:
        loop = todo.pop(0)
        if 0 < _rounds(kernel, effects, loop) <= _MOST:
            yield loop
        else:
            todo += outermost(loop.body)


def _rounds(kernel: Kernel, effects: Effects, loop: Loop) -> int:
    """How many copies there would be of what is in a loop; 0 where it has to stay."""
    axis = kernel.axes().get(loop)
    if axis is None or not axis.trips or not _is_plain(axis, effects):
        return 0
    symbols = kernel.reading.symbols
    walked = any(
        access.offset is not None and {axis.name, _THREAD} <= symbols.inside(access.offset)
        for access in effects.accesses(loop.body)
    )
    if not walked:
        return 0
    inner = (_rounds(kernel, effects, one) for one in loops_in(loop.body))
    return axis.trips * max(inner, default=1) or axis.trips


def _is_plain(axis: Axis, effects: Effects) -> bool:
    """Whether every round is made, whole, and the counter is a number in each."""
    loop, variable = axis.node, axis.variable
    assert axis.start is not None
    return (
        is_counted(axis, effects)
        and axis.start.value is not None
        and variable not in effects.changed(loop.body)
        and not any(isinstance(s, Leave) for s in walk(loop.body))
    )


def _copies(kernel: Kernel, loop: Loop) -> Node | tuple[Statement, ...]:
    axis = kernel.axes()[loop]
    assert axis.variable is not None
    assert axis.start is not None
    assert axis.step is not None
    kind, name = declared_type(kernel, axis.variable), axis.variable.name
    body, first, step = kernel.show_inside(loop.body), axis.start.value or 0, axis.step.value or 0
    rounds = [
        f"{{\nconst {kind} {name} = {first + at * step};\n{body}\n}}"
        for at in range(axis.trips or 0)
    ]
    if any(isinstance(s, Block) and loop in s.body for s in walk(kernel.function.body)):
        return tuple(map(lines, rounds))
    return lines("\n".join(["{", *rounds, "}"]))
