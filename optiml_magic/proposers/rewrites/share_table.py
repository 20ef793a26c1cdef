"""Small tables in which the data say what is read, in a block's shared memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

from optiml_magic.kernels.primitives.base import Kernel, Refused, in_turn
from optiml_magic.kernels.primitives.constant_tables import constant_tables, constants_tabled
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.room import fitting
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.table_parts import Part, parted, table_parts
from optiml_magic.kernels.primitives.tabled import Table, tabled, tables
from optiml_magic.kernels.primitives.taking import ways
from optiml_magic.kernels.primitives.unstrided import unstrided
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_CONSTANTS = "smsp__average_warps_issue_stalled_imc_miss_per_issue_active.ratio"
_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
_EACH = 64  # threads for each element of a table, below which bringing it is not worth it: ours
_CHEAP = 16  # elements brought from a cache that cost as much as one that is updated there: ours
_LARGE = 8 * 1024  # bytes of tables above which blocks should be few and large: ours

_Held = Table | Part
_Bring = Callable[[Sequence[_Held]], Callable[[Kernel], Kernel | Refused]]


class ShareTable(KernelRule):
    """Searches in sorted tables, interpolation, palettes, parameters by type: any order."""

    name = "share_table"
    before = (unstrided, linear, in_full, direct)
    teaches = (
        "Each lane asked a small table for an element of its own, as the data said, so that the "
        "lanes of a warp met in many lines of a cache and took turns. A block that brings the "
        "whole table into shared memory once, and goes on with many items, gives each lane its "
        "word from a bank, and waits less for each of the steps of a search. Of a larger table a "
        "block brings the part that it asks for, where that says by itself how large it is. "
        "Constant memory gives a warp one word at a time, so that lanes that ask for several wait "
        "as often."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        yield from self._sites(kernel, fitting(kernel, tables(kernel), _EACH), "whole", _whole)
        parts = fitting(kernel, table_parts(kernel), _EACH * _blocks(kernel))
        yield from self._sites(kernel, parts, "as far as a block needs it", _part)
        constants, refused = fitting(kernel, constant_tables(kernel), _EACH)
        yield from self._sites(kernel, (constants, refused), "from constant memory", _constant)
        if constants:
            names = ", ".join(own.array for own in constants)
            yield Site(
                "constants", f"bring {names} into shared memory from constant memory",
                partial(_constant(constants), kernel), 0.6,
                Hypothesis(_CONSTANTS, "lower", "lanes no longer take turns", (1.2, 32.0)),
            )  # fmt: skip

    def _sites(
        self, kernel: Kernel, fit: tuple[Sequence[_Held], list[Refused]], words: str, bring: _Bring
    ) -> Iterator[Site | Refused]:
        found, refused = fit
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
        prior = 0.78 if any(own.looped for own in found) else 0.5
        for way in several:
            yield Site(
                f"{way.key} {words}".removesuffix(" whole"),
                f"bring {arrays} into shared memory {words}{way.words}",
                partial(in_turn, kernel, (way.step, bring(found))),
                prior if way.key == "vectors" else prior - 0.03,
                Hypothesis(_SECTORS, "lower", "banks give each lane its word", (1.2, 32.0)),
                way.points,
            )  # fmt: skip


def _whole(found: Sequence[_Held]) -> Callable[[Kernel], Kernel | Refused]:
    return partial(tabled, arrays=tuple((own.array, own.count) for own in found))


def _part(found: Sequence[_Held]) -> Callable[[Kernel], Kernel | Refused]:
    return partial(parted, arrays=tuple(own.array for own in found))


def _constant(found: Sequence[_Held]) -> Callable[[Kernel], Kernel | Refused]:
    return partial(constants_tabled, arrays=tuple((own.array, own.count) for own in found))


def _blocks(kernel: Kernel) -> int:
    """How many blocks there are along y and z, which may have a part each."""
    return prod(kernel.facts.grid[1:]) if kernel.facts is not None else 1
