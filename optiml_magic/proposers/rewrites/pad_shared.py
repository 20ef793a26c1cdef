"""Shared tiles whose columns lie in one bank, with one element more a row."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused
from optiml_magic.kernels.primitives.padded import pad, tiles
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site


class PadShared(KernelRule):
    """``tile[32][32]`` that lanes walk down becomes ``tile[32][32 + 1]``."""

    name = "pad_shared"
    teaches = (
        "Shared memory has 32 banks, and lanes that ask one of them for different words wait for "
        "each other. Down a column of a tile whose rows are a power of two long, all lanes ask the "
        "same few banks; with one element more a row each has another one."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        found = tiles(kernel)
        if not found:
            return
        names = ", ".join(tile.variable.name for tile in found)
        most = max(tile.before / tile.after for tile in found)
        yield Site(
            "pad", f"one element more in each row of {names}", partial(pad, kernel), 0.7,
            Hypothesis(
                "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "lower",
                "the lanes of a column have banks of their own", (2.0, 10.0 * most),
            ),
        )  # fmt: skip
