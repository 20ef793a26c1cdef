"""Short sorted lists that each round of a loop searches, held in registers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.held_lists import held_lists, held_of
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_PRIOR = 0.88


class HoldList(KernelRule):
    """Neighbours that two nodes share, triangles, products of sparse rows by binary search."""

    name = "hold_list"
    teaches = (
        "A binary search is a chain of loads: each waits for the one before, and lanes that look "
        "in other lists ask for other sectors in every step. Lists of sparse rows and of "
        "neighbours are short. A thread that looks for many numbers in one loads it once, by "
        "vectors, and keeps it in registers, where the search is a handful of comparisons and "
        "selections. That the list is in order is seen as it is loaded; a list that is long, or "
        "is not in order, is searched as before."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        for search in held_of(kernel):
            if isinstance(search, NotLegal):
                yield Refused(search.reason, search.line)
                continue
            line, array = search.loop.line, search.name
            yield Site(
                f"list {line}",
                f"hold what line {line} searches of `{array}` in registers, where it is short",
                partial(held_lists, kernel, line), _PRIOR,
                Hypothesis(
                    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "lower",
                    "a list is loaded once, by vectors, and not at each step of a search",
                    (1.5, 6.0),
                ),
            )  # fmt: skip
