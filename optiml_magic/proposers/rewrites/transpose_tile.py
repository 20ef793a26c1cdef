"""Copies that load along one index and store along another, through a tile in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.digits import Digit
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.transposed import Tile, turn
from optiml_magic.kernels.primitives.turns import Turn
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_FEW = 8  # elements along a side for which no tile is worth its place: ours
_WIDE = 64  # elements along a side of a wide tile


class TransposeTile(KernelRule):
    """Transposes, permuted copies and maps between such layouts."""

    name = "transpose_tile"
    before = (*PLAIN, linear, planar, in_full, unravelled)
    teaches = (
        "Neighbouring elements of what is loaded were not neighbours in what is stored, so one of "
        "the two sides touched a sector for each lane. A block that loads a tile along one side "
        "and reads it along the other touches whole sectors on both; the padding keeps the "
        "columns of the tile in different banks."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        try:
            parts = Turn(kernel)
        except NotLegal:  # its index is none that a tile could turn
            return
        if not parts.turned:
            return
        parts.check()
        counts = [_count(parts, digit) for digit in (parts.load, parts.store)]
        least = min((count for count in counts if count is not None), default=_WIDE)
        if least < _FEW:
            yield Refused(f"one side of its tiles would have {least} elements")
            return
        strided = "st" if parts.load.axis == "x" and parts.load.weight.value == 1 else "ld"
        names = ", ".join(dict.fromkeys(t.array for t in parts.turned))
        size = max(t.size for t in parts.turned)
        tile = Tile(pad=max(1, 4 // size))
        while tile.side * (tile.side + tile.pad) * sum(t.size for t in parts.turned) > SHARED:
            tile = Tile(tile.side // 2, tile.rows, tile.pad)
        yield Site(
            "copy",
            f"turn {names} through a tile in shared memory",
            partial(turn, kernel, tile),
            0.85,
            Hypothesis(
                _SECTORS.format(strided), "lower", "both sides touch whole sectors", (2.0, 8.0)
            ),
            _points(tile, sum(t.size for t in parts.turned), least),
        )


def _points(tile: Tile, size: int, least: int) -> tuple[Point, ...]:
    """Wide tiles, of which a thread has many rows to load at once, where shared memory has room.

    What comes first is ours.
    """
    if tile.side < 32 or size > 4 or least < _WIDE:
        found = (tile.side, tile.rows), (tile.side, tile.rows // 2)
    else:
        found = (_WIDE, 4), ((tile.side, 4) if size == 4 else (_WIDE, 8))
    return tuple({"TILE": side, "ROWS": rows, "PAD": tile.pad} for side, rows in found)


def _count(parts: Turn, digit: Digit) -> int | None:
    """How many of a digit there are at the measured sizes."""
    count = digit.count
    if count is None:
        count = parts.bounds[digit.axis].over(digit.weight)
    return value(parts.kernel, count) if count is not None else None
