"""Copies that load along one index and store along another, through a tile in shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.digits import Digit
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.room import SHARED
from optiml_magic.kernels.primitives.shaped import linear, planar
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.transposed import Tile, turn
from optiml_magic.kernels.primitives.turned_sides import Sides
from optiml_magic.kernels.primitives.turns import Turn
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site

_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_{}.sum"
_LONG = 2048  # elements of a tile that is narrow: ours
_FEW = 3  # elements along a side for which no tile is worth its place: ours
_WIDE = 64  # elements along a side of a wide tile
_LEAST, _MOST = 128, 256  # threads of a block that takes vectors: as measured


class TransposeTile(KernelRule):
    """Transposes, permuted copies and maps between such layouts."""

    name = "transpose_tile"
    before = (*PLAIN, linear, planar, in_full, unravelled, unravelled_planes)
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
        sides = Sides(parts)
        counts = [_count(parts, digit) for digit in (parts.store, parts.load)]
        least = min((count for count in counts if count is not None), default=_WIDE)
        if least < _FEW:
            yield Refused(f"one side of its tiles would have {least} elements")
            return
        strided = "st" if parts.load.axis == "x" and parts.load.weight.value == 1 else "ld"
        names = ", ".join(dict.fromkeys(t.array for t in parts.turned))
        size = max(t.size for t in parts.turned)
        cell = sum(t.size for t in parts.turned)
        width, pad = sides.widest, max(1, 4 // size)
        widths = sides.store.width, sides.load.width
        extents = [max(_side(n), wide) for n, wide in zip(counts, widths, strict=True)]
        if max(extents) < _WIDE:  # a tile would be no longer than that
            extents = [32, 32]
        if min(extents) < 32:
            tiles = _narrow(extents, sides)
        else:
            tiles = _vectored(extents, width) if width > 1 else _by_element(extents, size)
        tiles = [_fitting(replace(tile, pad=pad), cell, width) for tile in tiles]
        yield Site(
            "copy",
            f"turn {names} through a tile in shared memory",
            partial(turn, kernel, tiles[0]),
            0.85,
            Hypothesis(
                _SECTORS.format(strided), "lower", "both sides touch whole sectors", (2.0, 8.0)
            ),
            tuple(map(_point, dict.fromkeys(tiles))),
        )


def _vectored(extents: Sequence[int], width: int) -> list[Tile]:
    """Tiles no wider than what they turn, of which a thread has four vectors at once.

    Measured on an H200: of 8192 x 4096 floats 66.9 us the first, 69.0 and 69.5 the others; of a
    permutation whose sides are 32 and 128 68.7 us the first, 70.6 the last.
    """
    rows, columns = extents
    few = min(32, rows), min(32, columns)
    own = min(_MOST, max(_LEAST, rows * columns // (4 * width)))
    return [Tile(rows, columns, own), Tile(rows, few[1], own), Tile(*few, _LEAST)]


def _by_element(extents: Sequence[int], size: int) -> list[Tile]:
    """Wide tiles, of which a thread has many rows to load at once; what comes first is ours."""
    if size > 4 or min(extents) < _WIDE:
        return [Tile(32, 32, 128), Tile(32, 32, 256)]
    return [Tile(_WIDE, _WIDE, 256), Tile(32, 32, 128) if size == 4 else Tile(_WIDE, _WIDE, 512)]


def _narrow(extents: Sequence[int], sides: Sides) -> list[Tile]:
    """Tiles that are as long as one side is short, so that few of their lanes have nothing to do.

    Their lengths are ours, and no more than the threads of a block take at once.
    """
    rows, columns = extents
    width = sides.load.width if rows < columns else sides.store.width
    long = min(256, _LONG // min(extents), _LEAST * width)
    if rows < columns:
        return [Tile(rows, long, _LEAST), Tile(rows, long // 2, _LEAST)]
    return [Tile(long, columns, _LEAST), Tile(long // 2, columns, _LEAST)]


def _side(count: int | None) -> int:
    """Elements along a side of a tile, of so many at the measured sizes."""
    return next((s for s in (4, 8, 16, 32) if count is not None and count <= s), _WIDE)


def _fitting(tile: Tile, size: int, width: int) -> Tile:
    """The tile, or a part of it for which shared memory has room, with a vector for a thread."""
    while tile.rows * (tile.columns + tile.pad) * size > SHARED:
        tile = tile.half()
    return replace(tile, threads=min(tile.threads, tile.rows * tile.columns // width))


def _point(tile: Tile) -> Point:
    return {
        "TILE_ROWS": tile.rows, "TILE_COLS": tile.columns, "THREADS": tile.threads,
        "PAD": tile.pad,
    }  # fmt: skip


def _count(parts: Turn, digit: Digit) -> int | None:
    """How many of a digit there are at the measured sizes."""
    count = digit.count
    if count is None:
        count = parts.bounds[digit.axis].over(digit.weight)
    return value(parts.kernel, count) if count is not None else None
