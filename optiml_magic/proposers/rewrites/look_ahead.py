"""Loops that seldom change what they keep, such as the nearest k: lanes look at rounds at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.appended import Appended, looking
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.chained import chained
from optiml_magic.kernels.primitives.counted import all_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import Effects, loops_in
from optiml_magic.kernels.primitives.ended import asked_within
from optiml_magic.kernels.primitives.foreseen import foreseen
from optiml_magic.kernels.primitives.gated import gated
from optiml_magic.kernels.primitives.lanes import Lanes, share
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.searched import searched
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import middle, rounds, threads
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.row_to_lanes import BLOCKS
from optiml_magic.proposers.rewrites.scalarise_array import written_short

_COUNTS = (4, 8, 16, 32)
_SHORT = 64  # rounds below which what they keep still changes in most of them: ours
_BUSY = 1024  # threads of a multiprocessor that hide what rounds wait for: ours


class LookAhead(KernelRule):
    """The k nearest, the k greatest of a row, peaks, the first k that pass a test."""

    name = "look_ahead"
    before = (*PLAIN, linear, planar, in_full, direct, branched, foreseen)
    teaches = (
        "A thread went through all candidates and kept a list of the best, which few of them "
        "change, and only because of these no other thread could help. The lanes of a warp each "
        "look at a candidate, read side by side; as long as one of them would change the list, "
        "all lanes put in the first, and look again. Of a list that only grows each lane appends "
        "its own, behind those of the lanes before it. The list is the same at each step, to the "
        "bit, and there are many more threads."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        effects, inside = Effects(kernel), set[object]()
        for number, loop in enumerate(loops_in(kernel.function.body)):
            axis = kernel.axes().get(loop)
            if loop in inside or axis is None:
                continue
            # Where the loops around it say how long it is, as in their first rounds; where threads
            # do, as in the one in the middle.
            around = {
                a.name: 0 for other, a in kernel.axes().items() if loop in loops_in(other.body)
            }
            length = rounds(kernel, axis, middle(kernel) | around)
            found = None if length is not None and length < _SHORT else _ready(kernel, number)
            if found is None:
                continue
            plain, lists = found
            effects.straightforward()
            inside |= set(loops_in(loop.body))
            counter = axis.variable.name if axis.variable is not None else "its rounds"
            lanes = Lanes("warp", 32, 256, _COUNTS, BLOCKS)
            title = "put what they find in order" if lists else "look ahead"
            yield Site(
                f"ahead {number}", f"lanes of a warp {title} in the loop over {counter}",
                partial(_shared, plain, number, lanes), 0.88 if _few(kernel) else 0.6,
                Hypothesis(TIME, "lower", "lanes look at several rounds at once", (1.5, 32.0)),
                ({"LANES": 32}, {"LANES": 16 if lists else 8}),
            )  # fmt: skip


def _ready(kernel: Kernel, number: int) -> tuple[Kernel, bool] | None:
    """The kernel with this loop counted, where lanes have to look ahead in it, and may.

    With it comes whether they append what they find to lists.
    """
    for made in _shapes(kernel, number):
        with suppress(NotLegal):
            loop = loops_in(made.function.body)[number]
            found = looking(made, loop, Effects(made))
            return None if found is None else (made, isinstance(found, Appended))
    return None


def _shapes(kernel: Kernel, number: int) -> Iterator[Kernel]:
    """The kernel with this loop counted, and with rounds that end with one branch."""
    made = all_counted(where_legal(asked_within, kernel), (number,))
    if isinstance(made, Kernel):  # so are those that store what it found as pointers move
        loops = loops_in(made.function.body)
        behind = number + len(loops_in(loops[number].body)) + 1
        for other in range(behind, len(loops)):
            made = where_legal(all_counted, made, (other,))
    while isinstance(made, Kernel):
        yield made
        one = gated(made, number)
        if isinstance(one, Kernel):
            yield one
        made = chained(made, number)


def _shared(kernel: Kernel, number: int, lanes: Lanes) -> Kernel | Refused:
    """Lanes look ahead, and the list that all of them change lies in registers if it can."""
    look = partial(share, at=(number,), lanes=lanes, far=True)
    return in_turn(kernel, (look, partial(where_legal, searched), written_short))


def _few(kernel: Kernel) -> bool:
    """Whether there are too few threads to keep the chip busy."""
    count, chip = threads(kernel), CHIPS.get(kernel.chip)
    return count is None or chip is None or count < _BUSY * chip.sms
