"""Pointers to arrays of their own, said to be so, where loads stand behind stores."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.restricted import alone, held_up, restricted
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site


class RestrictReadonly(KernelRule):
    """``float* a`` becomes ``float* __restrict__ a``."""

    name = "restrict_readonly"
    teaches = (
        "A compiler must assume that a store may change whatever another pointer leads to. So it "
        "loads again what it had already, and no load behind a store is on its way before it. "
        "Pointers that are said to lead to arrays of their own leave it free to keep values in "
        "registers and to load ahead."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        found = alone(kernel)
        line = held_up(kernel)
        stored = {variable.name for variable in found} & kernel.reading.written
        if not line:
            return
        if not stored:
            if kernel.facts is not None and not any(v.restrict for v in kernel.function.parameters):
                yield Refused("what it stores to may be what it loads from", line)
            return
        names = ", ".join(variable.name for variable in found)
        yield Site(
            "restrict", f"say that {names} lead to arrays of their own",
            partial(restricted, kernel), 0.35,
            Hypothesis(
                "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "lower",
                "what is known already is not loaded again", (1.0, 4.0),
            ),
        )  # fmt: skip
