"""Small tables in which the data say what is read, in a block's shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.room import fitting
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.tabled import tabled, tables
from optiml_magic.kernels.primitives.taking import ways
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
_EACH = 64  # threads for each element of a table, below which bringing it is not worth it: ours
_CHEAP = 16  # elements brought from a cache that cost as much as one that is updated there: ours
_LARGE = 8 * 1024  # bytes of tables above which blocks should be few and large: ours


class ShareTable(KernelRule):
    """Searches in sorted tables, interpolation, palettes, parameters by type: any order."""

    name = "share_table"
    before = (unstrided, linear, in_full, direct)
    teaches = (
        "Each lane asked a small table for an element of its own, as the data said, so that the "
        "lanes of a warp met in many lines of a cache and took turns. A block that brings the "
        "whole table into shared memory once, and goes on with many items, gives each lane its "
        "word from a bank, and waits less for each of the steps of a search."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        found, refused = fitting(kernel, tables(kernel), _EACH)
        total = sum(own.bytes for own in found)
        yield from refused
        if not found:
            return
        rest = max(sum(own.count for own in found) // _CHEAP, 1)
        several, reason = ways(kernel, rest, 1024 if total > _LARGE else 256)
        if reason is not None:
            yield reason
            return
        arrays = ", ".join(own.array for own in found)
        held = partial(tabled, arrays=tuple((own.array, own.count) for own in found))
        prior = 0.78 if any(own.looped for own in found) else 0.5
        for way in several:
            yield Site(
                way.key, f"bring {arrays} into shared memory whole{way.words}",
                partial(in_turn, kernel, (way.step, held)),
                prior if way.key == "vectors" else prior - 0.03,
                Hypothesis(_SECTORS, "lower", "banks give each lane its word", (1.2, 32.0)),
                way.points,
            )  # fmt: skip
