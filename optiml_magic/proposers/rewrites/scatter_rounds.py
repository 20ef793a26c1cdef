"""A sum for each key, whose thread goes through all rows: a thread a row, by atomic operations."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.chunks import front
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.enclosed import enclosed
from optiml_magic.kernels.primitives.keyed_rounds import asks_for_keys, by_key
from optiml_magic.kernels.primitives.one_block import one_block
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.scattered import scattered
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import measured, most_rounds, with_grid
from optiml_magic.model.facts import ArrayFacts
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.compute_once import items_of
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.private_counters import PrivateCounters

_KEYS = 4  # threads that go through the same rounds, from which on a thread a round is less: ours
_ROUNDS = 1024  # that each of them makes, from which on a launch for them pays: ours
_ALIGNED = 256  # bytes: CUDA C++ Programming Guide, "Device Memory Accesses"
_ATOMICS = ("the order of additions",)


class ScatterRounds(KernelRule):
    """Sums and counts by group, a thread or a block for each; a histogram, a thread a bin."""

    name = "scatter_rounds"
    before = (*PLAIN, one_block, linear, planar, in_full, direct, branched, enclosed)
    teaches = (
        "Each thread had a key of its own and went through all rows to add up those with that "
        "key, so every row was looked at once for each key, and nearly all of that for nothing. A "
        "row says by itself whose it is: a launch before has a thread for each row, which adds to "
        "the sum of its key by an atomic operation, and all rows are read once. Blocks keep their "
        "own copies of the sums in shared memory where these fit."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        refused = list[Refused]()
        for number in range(len(loops_in(kernel.function.body))):
            if not asks_for_keys(kernel, number):
                continue
            counted = where_legal(as_counted, kernel, number, is_simple)
            try:
                finder, found = by_key(counted, number)
            except NotLegal as reason:
                line = loops_in(counted.function.body)[number].line
                refused.append(Refused(reason.reason, reason.line or line))
                continue
            keys = items_of(counted, finder, found.axis)
            length = most_rounds(counted, finder.axes[found.loop])
            if kernel.facts is not None and (
                keys is None or length is None or keys < _KEYS or length < _ROUNDS
            ):
                continue
            made = scattered(counted, number)
            if isinstance(made, Refused):
                yield made
                return
            sums = ", ".join(variable.name for variable in found.sums)
            exact = all(kind.integral for kind in found.sums.values())
            said = () if exact else _ATOMICS
            expected = Hypothesis(
                TIME, "lower", "a row is looked at once, not by every key", (1.5, 256.0)
            )
            title = f"add up {sums} by a thread for each round, at the place of its key"
            own = next(_private(made), None)
            if own is None:
                yield Site(str(number), title, partial(scattered, counted, number), 0.85, expected,
                           arithmetic=said)  # fmt: skip
            else:
                yield Site(
                    f"{number} own", f"{title}, then {own.title}", own.apply, 0.96, expected,
                    own.points, said,
                )  # fmt: skip
            return
        yield from refused[:1]


def _private(made: Kernel) -> Iterator[Site]:
    """What the launch of the rounds is with a block's own copies of the sums."""
    rule, first = PrivateCounters(), _front(made)
    try:
        yield from (s for s in rule.sites(rule.shaped(first)) if isinstance(s, Site))
    except NotLegal:
        return


def _front(made: Kernel) -> Kernel:
    """The launch of the rounds, with what is known of its scratch."""
    first = front(made)
    if first.facts is None:
        return first
    arrays = {**first.facts.arrays}
    for one in made.program.scratch:
        count, size = measured(made, one.count), int(one.dtype[-1])
        arrays[one.name] = ArrayFacts(
            one.name, "scratch", one.dtype, (count,), count * size, _ALIGNED
        )
    return with_grid(replace(first, facts=replace(first.facts, arrays=arrays)))
