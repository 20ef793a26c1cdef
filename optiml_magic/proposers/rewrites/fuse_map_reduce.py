"""A map whose elements the next launch adds up, or asks for otherwise, computed there."""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.fused import fused
from optiml_magic.kernels.primitives.inlined import inlined
from optiml_magic.kernels.primitives.paired import rounds
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site


class FuseMapReduce(KernelRule):
    """Squares and then their sums; a grey image and then its edges."""

    name = "fuse_map_reduce"
    teaches = (
        "One launch computed an array, element by element, and stored it; the next one read it "
        "back. What is computed from a few elements costs less than a round trip through memory: "
        "the next launch computes an element where it asks for it, and the array is gone."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        made, joined = kernel, [kernel.launch.kernel or kernel.function.name]
        arithmetic = within = False
        while made.behind is not None:
            last, rounding = made.behind, rounds(made)
            again = fused(made)
            if isinstance(again, Refused):
                again = inlined(made)
                if isinstance(again, Refused):
                    if len(joined) == 1:
                        yield again
                    break
                within = True
            made, arithmetic = again, arithmetic or rounding
            joined.append(last.launch.kernel or last.function.name)
        if within:
            yield Site(
                "inline", f"compute what {', '.join(joined[:-1])} stored within {joined[-1]}",
                lambda: made, 0.8,
                Hypothesis(TIME, "lower", "an array is neither written nor read", (1.2, 4.0)),
                arithmetic=("the rounding of products",) if arithmetic else (),
            )  # fmt: skip
