"""Atomic operations of all threads on one place, as one a block."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.added_in_rounds import added_in_rounds
from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn, where_legal
from optiml_magic.kernels.primitives.collected import collected
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.endings import enclosed
from optiml_magic.kernels.primitives.flat import flat
from optiml_magic.kernels.primitives.gathered import gathered, sums, width
from optiml_magic.kernels.primitives.item_a_round import item_a_round
from optiml_magic.kernels.primitives.raised import raised
from optiml_magic.kernels.primitives.released import released
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.stopped import stopped
from optiml_magic.kernels.primitives.taking import ways
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.kernels.primitives.updates import leaves
from optiml_magic.kernels.primitives.within import within
from optiml_magic.kernels.primitives.written import written
from optiml_magic.kernels.symbols import MEMORY
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_ATOMICS = "l1tex__t_sectors_pipe_lsu_mem_global_op_red.sum"
_MANY = 16  # elements: ours
_LONG = 32  # rounds along a row, which lanes should share before sums are added up: ours
_BEHIND = 0.6  # of its chance, which is left then: ours


class BlockSum(KernelRule):
    """Dot products, norms, losses and counts: every thread updates the same element."""

    name = "block_sum"
    before = (
        collected, released, raised, stopped, added_in_rounds, item_a_round, within, flat,
        unstrided, linear, in_full, direct, written,
    )  # fmt: skip
    teaches = (
        "Every thread updated one element in global memory, and such updates are done one after "
        "the other. A thread that takes many elements adds them up in a register, the lanes of a "
        "warp combine what they have by shuffles, the warps through shared memory, and one thread "
        "of a block updates the element once."
    )

    def shaped(self, kernel: Kernel) -> Kernel:
        """What it is before it adds up, and whether an update a block is little beside the rest.

        A block that adds up already gains nothing where its items take many rounds, and less where
        one index is divided into what were two.
        """
        made = super().shaped(kernel)
        together, axes = bool(kernel.reading.barriers), len(kernel.launch.block)
        made.known[BlockSum] = together and (axes > 1 or _long(made))
        return made

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        found, refused = sums(kernel)
        yield from refused
        if not found:
            return
        arrays = ", ".join(dict.fromkeys(s.whole.array for s in found))
        title = f"add up in a block what all threads update in {arrays}"
        arithmetic = () if all(s.whole.exact for s in found) else ("the order of additions",)
        expected = Hypothesis(_ATOMICS, "lower", "a block updates once for all", (32.0, 4096.0))
        apart = any(s.own_blocks(kernel) for s in found)
        alone = apart or _holds(kernel)
        others, reason = ([], None) if alone else ways(kernel, len(found))
        first = _BEHIND if _walks(kernel) or kernel.known.get(BlockSum) else 1.0
        for way in others:
            vectors = 0.6 if _chosen_by_data(kernel) else 0.88
            prior = round(first * (vectors if way.key == "vectors" else 0.85), 2)
            yield Site(
                way.key, f"{title}{way.words}", partial(in_turn, kernel, (way.step, gathered)),
                prior, expected, way.points, arithmetic,
            )  # fmt: skip
        if not others:
            whole = where_legal(enclosed, kernel) if leaves(kernel.function.body) else kernel
            line = leaves(whole.function.body)
            if line:
                yield reason or Refused("threads leave before their block adds up", line)
                return
            width(whole)
            yield Site(
                "block", title, partial(gathered, whole), round(first * 0.8, 2), expected, ({},),
                arithmetic,
            )  # fmt: skip


def _chosen_by_data(kernel: Kernel) -> bool:
    """Whether what memory holds says what else is loaded, of which vectors bring all."""
    loads = [a for a in kernel.reading.accesses if a.mode == "load" and a.space == "global"]
    told = [a for a in loads if any(MEMORY in condition.depends for condition in a.guard)]
    there = {(a.array, a.index) for a in loads if a not in told}
    return any((a.array, a.index) not in there for a in told)


def _holds(kernel: Kernel) -> bool:
    """Whether a thread holds so much of its item that it should not have another one.

    A compiler loads ahead of the loop around its items what all of them need, beside that.
    """
    sizes = (a.extents for a in kernel.reading.arrays.values() if a.space == "local")
    counts = ([e.value or 0 for e in extents if e is not None] for extents in sizes)
    return sum(map(math.prod, counts)) >= _MANY


def _long(kernel: Kernel) -> bool:
    """Whether an item takes so many rounds that one update a block is nothing beside them."""
    accesses = [a for a in kernel.reading.accesses if a.mode == "load" and a.loops]
    lengths = (rounds(kernel, axis) for a in accesses for axis in kernel.reading.loops(a))
    return any((length or _LONG) >= _LONG for length in lengths)


def _walks(kernel: Kernel) -> bool:
    """Whether each thread goes along a long row of its own: lanes share these before all else."""
    for access in kernel.reading.accesses:
        form = access.index
        if access.mode != "load" or access.space != "global" or not access.loops or form is None:
            continue
        by, along = (form.coefficient(name) for name in ("threadIdx.x", access.loops[-1]))
        length = rounds(kernel, kernel.reading.loops(access)[-1])
        beside = by is None or (by.terms and by.value not in (1, -1))
        if beside and along is not None and along.value == 1 and (length or _LONG) >= _LONG:
            return True
    return False
