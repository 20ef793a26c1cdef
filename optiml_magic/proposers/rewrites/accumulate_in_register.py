"""Elements that every round of a loop loads and stores again, kept in registers meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.accumulating import held, in_register
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.carried import carried, carrying
from optiml_magic.kernels.primitives.collected import collected, collecting
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site


class AccumulateInRegister(KernelRule):
    """``out[i] += x`` in a loop becomes ``sum += x``, with one store behind the loop.

    So does ``atomicAdd(&out[i], x)``, with one atomic operation there.

    Rules that look for reductions take this step themselves: it makes none of them superfluous.
    """

    name = "accumulate_in_register"
    before = (in_full, direct)
    teaches = (
        "Each round of the loop stored its result to global memory and the next one loaded it "
        "again, since the compiler cannot know that nothing else in the loop is that element. A "
        "local is kept in a register, and memory is written once."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        for kind in (_behind, _sums, _kept):
            try:
                yield from kind(kernel)
            except NotLegal as reason:
                yield Refused(reason.reason, reason.line)


def _behind(kernel: Kernel) -> Iterator[Site]:
    """What rounds load that those before them stored."""
    arrays = dict.fromkeys(one.array for one in carrying(kernel))
    if arrays:
        yield Site(
            "carried", f"keep what rounds before stored in {', '.join(arrays)} in a register",
            partial(carried, kernel), 0.7,
            Hypothesis(
                "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "lower",
                "no round loads what the one before stored", (1.2, 3.0),
            ),
        )  # fmt: skip


def _kept(kernel: Kernel) -> Iterator[Site]:
    """Elements that all rounds store to."""
    found = held(kernel)
    if found:
        arrays = ", ".join(dict.fromkeys(one.array for one in found))
        yield Site(
            "kept", f"keep the element of {arrays} in a register through the loop",
            partial(in_register, kernel), 0.75,
            Hypothesis(
                "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "lower",
                "an element is stored once, not in every round", (2.0, 10_000.0),
            ),
        )  # fmt: skip


def _sums(kernel: Kernel) -> Iterator[Site]:
    """What rounds update at one place by atomic operations."""
    found = collecting(kernel)
    if not found:
        return
    arrays = ", ".join(dict.fromkeys(one.whole.array for one in found))
    shared = all(one.updates[0].access.space == "shared" for one in found)
    metric = (
        "smsp__inst_executed_op_shared_atom.sum" if shared
        else "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum"
    )  # fmt: skip
    yield Site(
        "collected", f"add up in a register what rounds add to {arrays}",
        partial(collected, kernel), 0.8,
        Hypothesis(metric, "lower", "a place is updated once a thread", (2.0, 10_000.0)),
        arithmetic=() if all(one.whole.exact for one in found) else ("the order of additions",),
    )  # fmt: skip
