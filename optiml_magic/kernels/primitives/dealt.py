"""P4, dealt: blocks along a free axis of the launch take every so many-th round of a loop.

As ``spread``, for rounds that are short or of which each thread has its own number: they store
apart, or do nothing to what other rounds touch but update it by atomic operations that commute.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from optiml_magic.kernels.editing import edited, lines
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, primitive
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.heads import Heads
from optiml_magic.kernels.primitives.places import own_text_only
from optiml_magic.kernels.primitives.rounds import shareable
from optiml_magic.kernels.primitives.sizes import with_grid
from optiml_magic.kernels.primitives.spread import alone, by_first, free_axis
from optiml_magic.source.directives import TuneDirective
from optiml_magic.source.expressions import parse_expression

NAME = "PARTS"


@primitive
def dealt(kernel: Kernel, at: int, parts: int, counts: Sequence[int]) -> Kernel:
    """The loop with this number, of which so many blocks share the rounds.

    ``counts`` are the numbers of them to choose from.
    """
    kernel = kernel.settled()
    loop = loops_in(kernel.function.body)[at]
    effects = Effects(kernel)
    effects.straightforward()
    own_text_only(kernel)
    if any(loop in loops_in(o.body) for o in loops_in(kernel.function.body)):
        raise NotLegal("the loop is inside another", loop.line)
    if shareable(kernel, loop, effects):
        raise NotLegal("its rounds add up", loop.line)
    free = free_axis(kernel)
    name, turn = kernel.fresh(NAME), kernel.fresh("turn")
    shared = Heads(kernel, [loop], effects).shared(loop, turn, name, {}, {})
    once = by_first(kernel, alone(kernel, loop, effects), free)
    body = edited(kernel.function.body, {**once, loop: shared})
    opening = lines(f"const int {turn} = blockIdx.{'xyz'[free]};")
    one = parse_expression("1")
    grid = [*kernel.launch.grid, one, one][: max(free + 1, len(kernel.launch.grid))]
    grid[free] = parse_expression(name)
    return with_grid(
        kernel.rewritten(
            replace(body, body=(opening, *body.body)),
            launch=replace(kernel.launch, grid=tuple(grid)),
            directives=[TuneDirective(name, tuple(counts), parts)],
        )
    )
