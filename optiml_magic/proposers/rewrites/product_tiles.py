"""How tiles of a product fill a chip: which of them are worth a try, and in how many parts."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.blocked import BLOCKS, DEEP, REGISTERS, TALL, Blocking
from optiml_magic.kernels.primitives.limits import MOST_BLOCKS
from optiml_magic.kernels.primitives.sizes import rounds, value
from optiml_magic.kernels.primitives.tile_layout import Tile
from optiml_magic.kernels.primitives.tile_triangle import working
from optiml_magic.kernels.primitives.warps import WARP
from optiml_magic.model.space import Point
from optiml_magic.source.expressions import parse_expression

_MOST_POINTS = 3
_BESIDE = 28  # registers of a thread for indices and addresses
_EACH = 64  # rounds that a part costs beside its own: what it leaves and begins with; ours
WORTH = 1.3  # times as much of the chip as tiles alone use, from which parts come first: ours
_NEAR = 0.9  # as much as tiles alone use, from which parts are tried behind these: ours
_FULL = 0.8  # of the chip's best, from which tiles alone need no parts behind them: ours
_ALONE = 0.75  # of its rate that a multiprocessor reaches with one block, which waits: measured
_SCHEDULERS = 4  # of a multiprocessor, each of which needs a warp
_EMPTY = 1 / 16  # of the least tile that outputs fill, below which they are too few: ours
PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256)
_LEAST = 2  # columns of a thread
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
    # Where there is no room for the tiles of more than two operands; few rows or few columns.
    (Tile(128, 128, 8, 8, 8), 0.8),
    (Tile(128, 16, 32, 8, 2), 0.4),
    (Tile(16, 128, 32, 4, 4), 0.4),
    (Tile(16, 128, 16, 4, 8), 0.6),  # estimated: 1.3 to 1.4 times as fast as 16 x 32
    (Tile(64, 64, 8, 4, 4), 0.65),
    (Tile(32, 32, 16, 4, 4), 0.5),
)


def _shapes(product: Blocking) -> list[tuple[Tile, float]]:
    """Those tiles, with as many words of sums a thread as if an output's were one float.

    All have the rounds that the product needs at least.

    Complex numbers and doubles have two: half the columns then, and half as many rounds at once,
    so that a thread and shared memory hold what they did.
    """
    words = product.layout.words
    fitting = ((_halved(tile) if words > 1 else tile, share) for tile, share in _SHAPES)
    return [(_deep(product, tile), share) for tile, share in fitting]


def _halved(tile: Tile) -> Tile:
    own, deep = tile.own_columns // 2, max(tile.deep // 2, DEEP[0])
    if own < _LEAST:
        return tile
    return replace(tile, columns=tile.columns // 2, deep=deep, own_columns=own)


@dataclass(frozen=True)
class _Filling:
    """How tiles fill a chip with outputs; ``length`` is the number of rounds, if that is known."""

    product: Blocking
    sms: int
    outputs: int
    others: int
    length: int | None

    def blocks(self, tile: Tile) -> int:
        """How many tiles have outputs with sums: of a triangle little more than half."""
        parts, turns = self.product.parts, self.product.turns
        return self.others * (working(parts, turns.around, tile) or 0)

    def rate(self, tile: Tile, share: float, count: int = 1) -> float:
        """What tiles in ``count`` parts reach of the best, by whole waves of blocks."""
        waves = -(-self.blocks(tile) * count // self.sms)
        if not waves:
            return 0.0
        best = self.outputs * count / (waves * self.sms * tile.rows * tile.columns)
        left = 1 + count * _EACH / self.length if count > 1 and self.length else 1.0
        busy = min(1.0, waves * tile.threads / (WARP * _SCHEDULERS))
        return share * busy * best * (1.0 if waves > 1 else _ALONE) / left


def _filling(product: Blocking) -> _Filling | None:
    parts, kernel = product.parts, product.parts.kernel
    rows, columns = (value(kernel, f) for f in (parts.outputs.rows, parts.outputs.columns))
    chip = CHIPS.get(kernel.chip)
    if chip is None or not rows or not columns:
        return None
    others = math.prod(kernel.facts.grid[2:]) if kernel.facts is not None else 1
    found = _Filling(product, chip.sms, 0, others, rounds(kernel, parts.axis))
    return replace(found, outputs=found.blocks(Tile(1, 1)))


def worth_tiles(product: Blocking) -> None:
    """Raise NotLegal where tiles would be all but empty, or more than a grid may have of them."""
    filling = _filling(product)
    if filling is None:
        return
    if filling.others > MOST_BLOCKS:
        raise NotLegal("it has more products than a grid has blocks along z")
    sizes = [filling.blocks(t) * t.rows * t.columns for t, _ in _shapes(product)]
    if filling.outputs < _EMPTY * min(sizes):
        raise NotLegal("its products are too small for tiles")


def split_points(product: Blocking, length: int | None = None) -> tuple[float, tuple[Point, ...]]:
    """Large tiles, in as many parts as fill the chip, and how many times as much of it these use.

    ``length`` is about how many rounds there are where memory says it. None where tiles alone use
    far more, or rounds are few. What parts leave in memory is little beside what they load.
    """
    filling, name = _filling(product), product.old.fresh("PARTS")
    if filling is not None and length is not None:
        filling = replace(filling, length=length)
    if filling is None or not filling.length:
        return 0.0, ()
    found = [*_rates(filling, name)]
    ranked = sorted((pair for pair in found if pair[1][name] > 1), key=lambda pair: -pair[0])
    alone = max((rate for rate, point in found if point[name] == 1), default=0.0)
    if not ranked or ranked[0][0] < alone * (WORTH if alone >= _FULL else _NEAR):
        return 0.0, ()
    gain = ranked[0][0] / alone if alone else math.inf
    return gain, tuple(point for _, point in ranked[:_MOST_POINTS])


def best_rate(product: Blocking) -> float:
    """What tiles reach of the best in as many parts as are best; 1 where sizes are not known."""
    filling = _filling(product)
    if filling is None or not filling.length:
        return 1.0
    return max((rate for rate, _ in _rates(filling, "PARTS")), default=1.0)


def _rates(filling: _Filling, name: str) -> Iterator[tuple[float, Point]]:
    """Tiles that a multiprocessor has room for, in parts of enough rounds, and what each reaches.

    ``name`` is that of the number of parts.
    """
    for tile, share in _shapes(filling.product):
        blocks = filling.blocks(tile)
        for count in PARTS:
            point = _point(filling.product, tile, -(-blocks * count // filling.sms))
            if point and (count == 1 or (filling.length or 0) >= count * _EACH):
                yield filling.rate(tile, share, count), {**point, name: count}


def points_of(product: Blocking) -> tuple[Point, ...]:
    """The tiles that keep most multiprocessors busy, by whole waves of blocks."""
    filling = _filling(product)
    if filling is None:
        chosen = (_shapes(product)[0][0], _deep(product, Tile()), Tile(32, 32, 32, 2, 2),
                  first_tile(product))  # fmt: skip
        return tuple(p for tile in chosen if (p := _point(product, tile, 1024)))[:2]
    best = sorted(_shapes(product), key=lambda shape: filling.rate(*shape), reverse=True)
    most = ((tile, -(-filling.blocks(tile) // filling.sms)) for tile, _ in best)
    found = [p for tile, each in most if (p := _point(product, tile, each))]
    return tuple(found[:_MOST_POINTS]) or (_point(product, first_tile(product), 1),)


def first_tile(product: Blocking) -> Tile:
    """The tile that a program begins with: one that a multiprocessor has room for."""
    for tile in (_deep(product, Tile()), *(tile for tile, _ in _shapes(product))):
        if _point(product, tile, 1):
            return tile
    raise NotLegal("a multiprocessor has no room for its tiles")


def _deep(product: Blocking, tile: Tile) -> Tile:
    return replace(tile, deep=max(tile.deep, product.least_deep))


def _shallow(product: Blocking, tile: Tile) -> Tile:
    """A tile with no more rounds than there are, where that is possible: others are for nothing."""
    count = rounds(product.parts.kernel, product.parts.axis) or tile.deep
    count = max(count, product.least_deep)
    fewer = replace(tile, deep=min(n for n in (*DEEP, tile.deep) if n >= min(count, tile.deep)))
    return fewer if product.fits(fewer) else tile


def _point(product: Blocking, tile: Tile, most: int) -> Point:
    """The tile with as many blocks at once as registers hold, ``most`` if so many; or nothing."""
    layout, tile = product.layout, _shallow(product, tile)
    needed = parse_expression(layout.registers).evaluate(layout.values(tile)) + _BESIDE
    each = -(-needed // _ROUNDED) * _ROUNDED * tile.threads
    fitting = [n for n in BLOCKS if n * each <= REGISTERS and n <= max(1, most)]
    flat = tile.rows < min(product.old.block[1] or 1, TALL)
    if not fitting or flat or not product.fits(tile):
        return {}
    return layout.values(replace(tile, blocks=fitting[-1]))
