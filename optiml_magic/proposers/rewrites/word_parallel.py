"""Loops that ask packed symbols one by one, such as bases of two bits or the bits of a map."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.word_parallel import in_words, steps_of
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site


class WordParallel(KernelRule):
    """Mismatches of packed DNA, common bits of fingerprints, the longest common prefix."""

    name = "word_parallel"
    teaches = (
        "Each round shifted one symbol out of its word and asked for it alone: for a few bits a "
        "load, a shift and a branch. Words that are combined as they are say it of all their "
        "symbols at once: what differs is their exclusive or, of which the bits of each symbol "
        "are folded into one. A count is the number of these bits, the first that differs the "
        "place of the lowest. Where two rows begin at other places of their words, a funnel shift "
        "brings them to the same."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        made, refused = steps_of(kernel)
        yield from (Refused(one.reason, one.line) for one in refused)
        if not made:
            return
        where = ", ".join(str(loop.line) for loop in made)
        yield Site(
            "words", f"ask all symbols of a word at once in the loop on line {where}",
            partial(in_words, kernel), 0.85,
            Hypothesis(
                "smsp__inst_executed.sum", "lower",
                "a step takes as many symbols as a word holds", (1.3, 24.0),
            ),
        )  # fmt: skip
