"""Loops that combine rows with columns, as products of tiles in shared memory and registers."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.blocked import BLOCKS, REGISTERS, block_outputs
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.operands import Contraction, combining
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.kernels.primitives.sizes import value
from optiml_magic.kernels.primitives.tile_layout import Layout, Tile
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.source.expressions import parse_expression

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_MOST_POINTS = 3
_BESIDE = 28  # registers of a thread for indices and addresses
_ROUNDED = 8  # registers are given out so many at a time
#: Tiles worth a try, and what each reaches on a full chip of the best: benchmarks/gpu/products.py.
#: Few outputs a thread are for products that have not enough blocks otherwise.
_SHAPES = (
    (Tile(128, 128, 16, 8, 8), 1.0),
    (Tile(64, 128, 16, 8, 8), 0.99),
    (Tile(256, 128, 8, 16, 8), 0.97),
    (Tile(128, 64, 16, 8, 8), 0.9),
    (Tile(64, 64, 16, 8, 8), 0.87),
    (Tile(64, 64, 16, 4, 8), 0.86),
    (Tile(32, 64, 32, 4, 4), 0.74),
    (Tile(64, 64, 16, 4, 4), 0.73),
    (Tile(32, 32, 32, 4, 4), 0.64),
    (Tile(16, 32, 32, 4, 4), 0.5),
    (Tile(32, 32, 32, 2, 2), 0.45),
    (Tile(16, 32, 32, 2, 2), 0.4),
)


class BlockedProduct(KernelRule):
    """Products of matrices and their kin: distances, correlations, Gram matrices."""

    name = "blocked_product"
    before = (planar, in_full, in_register)
    teaches = (
        "Each thread read a row and a column for one output, so every element came through the "
        "caches once for each of its uses. A block that brings tiles of both into shared memory, "
        "and a thread that holds several outputs in registers, use each element many times; the "
        "next tiles travel while the present ones are computed with."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        for number, loop in enumerate(loops_in(kernel.function.body)):
            if not combining(kernel, loop):
                continue
            try:
                ready = as_counted(kernel, number)
                if isinstance(ready, Refused):
                    yield ready
                    continue
                parts = Contraction(ready, loops_in(ready.function.body)[number])
            except NotLegal as reason:
                yield Refused(reason.reason, reason.line)
                continue
            counter = parts.axis.variable.name if parts.axis.variable is not None else "its loop"
            yield Site(
                f"loop {number}",
                f"tiles in shared memory and registers for the loop over {counter}",
                partial(block_outputs, ready, number, Tile()),
                0.9,
                Hypothesis(_REQUESTS, "lower", "each element is loaded once a block", (4.0, 64.0)),
                _points(parts),
                () if parts.exact else ("the order of additions",),
            )


def _points(parts: Contraction) -> tuple[Point, ...]:
    """The tiles that keep most multiprocessors busy, by whole waves of blocks."""
    kernel, layout = parts.kernel, Layout(parts)
    rows, columns = (value(kernel, f) for f in (parts.outputs.rows, parts.outputs.columns))
    chip = CHIPS.get(kernel.chip)
    if rows is None or columns is None or chip is None or not rows or not columns:
        chosen = (_SHAPES[0][0], Tile(64, 64, 16, 4, 4))
        return tuple(p for tile in chosen if (p := _point(layout, tile, 1024)))
    others = math.prod(kernel.facts.grid[2:]) if kernel.facts is not None else 1

    def blocks(tile: Tile) -> int:
        return -(-rows // tile.rows) * -(-columns // tile.columns) * others

    def rate(shape: tuple[Tile, float]) -> float:
        tile, share = shape
        waves = -(-blocks(tile) // chip.sms)
        padded = blocks(tile) * tile.rows * tile.columns
        return share * blocks(tile) / (waves * chip.sms) * rows * columns * others / padded

    best = [tile for tile, _ in sorted(_SHAPES, key=rate, reverse=True)]
    found = [p for tile in best if (p := _point(layout, tile, -(-blocks(tile) // chip.sms)))]
    return tuple(found[:_MOST_POINTS])


def _point(layout: Layout, tile: Tile, most: int) -> Point:
    """The tile with as many blocks at once as registers hold, ``most`` if so many; or nothing."""
    needed = parse_expression(layout.registers).evaluate(layout.values(tile)) + _BESIDE
    each = -(-needed // _ROUNDED) * _ROUNDED * tile.threads
    fitting = [n for n in BLOCKS if n * each <= REGISTERS and n <= max(1, most)]
    return layout.values(replace(tile, blocks=fitting[-1])) if fitting and needed < 256 else {}
