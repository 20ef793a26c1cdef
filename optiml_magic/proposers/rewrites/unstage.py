"""Shared memory that is read about once an element, where global memory would do."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.domains import parted
from optiml_magic.kernels.primitives.own_registers import own_arrays, own_registers
from optiml_magic.kernels.primitives.unstaged import unstaged
from optiml_magic.kernels.primitives.unwaited import unwaited
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_OWN, _BESIDE = 0.4, 0.15  # the chances of registers for, or beside, what is shared; ours
_LESS = Hypothesis(
    "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio", "lower",
    "no thread waits for what it has stored itself", (1.1, 1000.0),
)  # fmt: skip
_FEW = 8  # reads of an element that the caches serve as well as shared memory; ours


class Unstage(KernelRule):
    """``tile[t] = a[i]; __syncthreads(); ... tile[t]`` becomes ``a[i]``.

    Rules that bring tiles of their own take this step themselves, whatever is read how often.
    """

    name = "unstage"
    teaches = (
        "The block brought elements into shared memory, waited, and read each of them about once. "
        "The first level cache keeps what neighbouring threads read as well, so a direct load "
        "needs no copy, no room in shared memory and no barrier, and warps do not wait for each "
        "other. What a thread stores there for itself alone is as well in a register."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        names = dict.fromkeys(a.array for a in kernel.reading.accesses if a.space == "shared")
        if not names:
            return
        yield from _in_registers(kernel)
        made = unstaged(kernel)
        if isinstance(made, Refused):
            yield made
            return
        most = max(_reads(kernel, name) for name in names)
        if most > _FEW:
            yield Refused(f"an element of shared memory is read {most:.0f} times")
            return
        yield Site(
            "direct", f"load {', '.join(names)} where it is read", lambda: made,
            0.6 if most <= 1 else 0.4,
            Hypothesis(
                "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio", "lower",
                "no thread waits for what another one brings", (1.5, 1000.0),
            ),
        )  # fmt: skip


def _in_registers(kernel: Kernel) -> Iterator[Site]:
    """What threads store in shared memory for themselves."""
    try:
        found = own_arrays(kernel)
    except NotLegal:
        return
    if found:
        names = ", ".join(own.variable.name for own in found)
        title = f"hold in registers what each thread asks for of its own in {names}"
        likely = _OWN if any(own.alone for own in found) else _BESIDE
        step = unwaited if isinstance(unwaited(kernel), Kernel) else own_registers
        yield Site("own", title, partial(step, kernel), likely, _LESS)


def _reads(kernel: Kernel, name: str) -> float:
    """How often an element is read in each round that it is brought for."""
    stored = [a for a in kernel.reading.of(name) if a.mode == "store"]
    around = set.intersection(*({*a.loops} for a in stored)) if stored else set()
    length = math.prod(
        (e.value or 1) if e is not None else 1 for e in kernel.reading.arrays[name].extents
    )
    reads = 0.0
    for access in kernel.reading.of(name):
        inner = [axis for axis in kernel.reading.loops(access) if axis.name not in around]
        found = parted(kernel, access.guard, inner) if access.mode == "load" else None
        if access.mode == "load":
            reads += found[0].count if found is not None else math.inf
    return reads / length
