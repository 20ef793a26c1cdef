"""What rules do first to kernels that are half tuned already, where it applies.

Functions that combine stand where they are called, local vectors become a local for each member,
sums that data choose among a local for each, of equals the order of rounds says which is kept, what
rounds add to one place is added behind them, rounds that blocks make a grid apart have a block
each, barriers go that nobody needs, what the threads of a block add up together one thread does in
loops, rounds that take several items a block apart take one, an atomic operation on what one thread
alone has is a plain one, tiles in shared memory become direct loads, also where a round has one
beside them, blocks are without threads that do nothing, guards stand before the loops that need
them, blocks that are tiles of a plane lie along its axes, those that are a row each become a plane
of threads, those of a small matrix each a box of them, a launch of whole blocks has a guard, one of
more threads than work has as many, counters that trail others are computed, bits are counted at
once, the element at a place that a loop keeps is kept with it, flags that rounds set are what these
combine, a loop that leaves the kernel ends before, a counter stands alone in its test, pairs of an
item with itself are left out behind what rounds find by loops, rounds that take their number apart
have a counter for each part of it, quotients have no counters that do not change them, and items a
grid apart have a thread each.
"""

from __future__ import annotations

from optiml_magic.kernels.primitives.aligned import aligned
from optiml_magic.kernels.primitives.asked_late import asked_late
from optiml_magic.kernels.primitives.bins_apart import bins_apart
from optiml_magic.kernels.primitives.bits import bits_at_once
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.boxed import boxed
from optiml_magic.kernels.primitives.coarser import coarser
from optiml_magic.kernels.primitives.collected import collected
from optiml_magic.kernels.primitives.digit_loops import digit_loops
from optiml_magic.kernels.primitives.fields import fields
from optiml_magic.kernels.primitives.forestalled import forestalled
from optiml_magic.kernels.primitives.item_a_round import item_a_round
from optiml_magic.kernels.primitives.let_on import let_on
from optiml_magic.kernels.primitives.only_digits import only_digits
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.remembered import remembered
from optiml_magic.kernels.primitives.round_a_block import round_a_block
from optiml_magic.kernels.primitives.rowed import rowed
from optiml_magic.kernels.primitives.signalled import signalled
from optiml_magic.kernels.primitives.slimmed import slimmed
from optiml_magic.kernels.primitives.solved import solved
from optiml_magic.kernels.primitives.stopped import stopped
from optiml_magic.kernels.primitives.trailing import trailing
from optiml_magic.kernels.primitives.unasked import unasked
from optiml_magic.kernels.primitives.unatomic import unatomic
from optiml_magic.kernels.primitives.unfolded import unfolded
from optiml_magic.kernels.primitives.unparted import unparted
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.untied import untied
from optiml_magic.kernels.primitives.unwaited import unwaited

PLAIN = (
    unfolded,
    only_digits,
    fields,
    bins_apart,
    untied,
    collected,
    round_a_block,
    unwaited,
    raised,
    item_a_round,
    unatomic,
    unstaged,
    unparted,
    slimmed,
    forestalled,
    unasked,
    aligned,
    rowed,
    boxed,
    bounded,
    trailing,
    bits_at_once,
    remembered,
    signalled,
    stopped,
    let_on,
    solved,
    asked_late,
    digit_loops,
    coarser,
    unstrided,
)
