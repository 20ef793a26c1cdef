"""Loops that combine rows with columns, as products of tiles in shared memory and registers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    where_legal,
)
from optiml_magic.kernels.primitives.blocked import (
    BLOCKS,
    DEEP,
    REGISTERS,
    TALL,
    Blocking,
    block_outputs,
)
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.collapsed import collapse, nested
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.dispersed import item_a_thread
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.exchanged import as_blocks, exchange_rows, folded
from optiml_magic.kernels.primitives.inward import all_inward
from optiml_magic.kernels.primitives.limits import MOST_BLOCKS
from optiml_magic.kernels.primitives.multiplied import multiplied
from optiml_magic.kernels.primitives.operands import Contraction, combining
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.rectangular import all_rectangular
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.kernels.primitives.sized import sized
from optiml_magic.kernels.primitives.sizes import rounds, value
from optiml_magic.kernels.primitives.spread import spread_rounds
from optiml_magic.kernels.primitives.tile_layout import Tile
from optiml_magic.kernels.primitives.tile_triangle import working
from optiml_magic.kernels.primitives.uncentred import uncentred
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.untiled import counts_alone
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.source.expressions import parse_expression

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_MOST_POINTS = 3
_BESIDE = 28  # registers of a thread for indices and addresses
_EACH = 64  # rounds that a part costs beside its own: what it leaves and begins with; ours
_WORTH = 1.3  # times as much of the chip as tiles alone use, from which parts come first: ours
_NEAR = 0.9  # as much as tiles alone use, from which parts are tried behind these: ours
_FULL = 0.8  # of the chip's best, from which tiles alone need no parts behind them: ours
_BEHIND = 0.9  # their chance then: ours
_ALONE = 0.75  # of its rate that a multiprocessor reaches with one block, which waits: measured
_SHORT = 256  # rounds of inner loops that are worth a number in the text: ours
_DIGITS = 3  # of the number of a block that may tell which filter it is: image, filter, depth
_LESS = 0.005  # of a chance, by which tiles of other arithmetic come after those of the same: ours
_LONG = 128  # rounds from which each pair once is worth stores that lie a row apart: ours
_EMPTY = 1 / 16  # of the least tile that outputs fill, below which they are too few: ours
_SHORTER = 0.1  # of a chance less for fewer: ours
PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
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
    (Tile(64, 64, 8, 4, 4), 0.65),
    (Tile(32, 32, 16, 4, 4), 0.5),
)


@dataclass(frozen=True)
class _Form:
    """Another form of a sum; ``less`` of a chance, by which its tiles come after the usual ones."""

    key: str
    words: str
    made: Callable[[Kernel, int], Kernel | Refused]
    changed: tuple[str, ...]
    less: float


_FORMS = (
    _Form(
        "multiplied", "squares multiplied out", multiplied, ("how sums of squares are made",), _LESS
    ),
    _Form("uncentred", "zero points taken out", uncentred, (), -_LESS),
)


class BlockedProduct(KernelRule):
    """Products of matrices and their kin: distances, correlations, Gram matrices."""

    name = "blocked_product"
    before = (
        *PLAIN, item_a_thread, bounded, planar, in_full, unravelled, all_rectangular, all_inward,
        in_register,
    )  # fmt: skip
    teaches = (
        "Each thread read a row and a column for one output, so every element came through the "
        "caches once for each of its uses. A block that brings tiles of both into shared memory, "
        "and a thread that holds several outputs in registers, use each element many times; the "
        "next tiles travel while the present ones are computed with. Of bytes four rounds are one "
        "instruction, and zero points are taken out of the sum."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        done: list[Loop] = []
        for number, loop in enumerate(loops_in(kernel.function.body)):
            if loop in done or not combining(kernel, loop):
                continue
            known = _numbers(kernel, loop)
            given = where_legal(sized, kernel, known) if known else kernel
            several = any(nested(loop))
            whole = collapse(given, number) if several else kernel
            if isinstance(whole, Refused):
                yield whole
                continue
            done += loops_in(loop.body) if several else []
            ready = as_counted(whole, number, counts_alone)
            where = "".join(f", where {n} is {v}" for n, v in known.items())
            if isinstance(ready, Refused):
                yield ready
                continue
            for form in _FORMS:
                products = form.made(ready, number)
                if isinstance(products, Kernel):
                    more = [*_either(products, number, f"{where}, {form.words}", form)]
                    yield from (site for site in more if isinstance(site, Site))
            yield from _either(ready, number, where)


def _either(
    ready: Kernel, number: int, where: str, form: _Form | None = None
) -> Iterator[Site | Refused]:
    """Tiles for the loop with this number, which has this ``form`` now if it had another.

    Also for one side of the diagonal alone, where the other comes to the same.
    """
    found = _contraction(ready, number)
    if isinstance(found, Refused):
        yield found
        return
    key = f"loop {number}{f' {form.key}' if form else ''}"
    pairs = _tiled(*found, f"{key} mirrored", f"{where}, each pair once", form, mirrored=True)
    yield from (site for site in pairs if isinstance(site, Site))
    yield from _tiled(*found, key, where, form)


def _tiled(
    parts: Contraction,
    at: int,
    key: str,
    where: str,
    form: _Form | None,
    *,
    mirrored: bool = False,
) -> Iterator[Site | Refused]:
    """Tiles for all outputs, or for those of one side of the diagonal."""
    try:
        product = Blocking(parts, mirrored=mirrored)
        _worth_tiles(product)
        points, first = _points(product), _first(product)
    except NotLegal as reason:
        yield Refused(reason.reason, reason.line)
        return
    counter = parts.axis.variable.name if parts.axis.variable is not None else "its loop"
    gain, split = _split_points(product)
    changed = form.changed if form else ()
    leads, less = gain >= _WORTH, form.less if form else 0.0
    if mirrored:
        long = (rounds(parts.kernel, parts.axis) or _LONG) >= _LONG
        less += -2 * _LESS if long else _SHORTER
    made = partial(block_outputs, at=at, tile=first, mirrored=mirrored)
    for site in _split(parts, at, key, f"{counter}{where}", split, changed, made):
        yield replace(site, prior=(site.prior if leads else _BEHIND) - less)
    yield Site(
        key,
        f"tiles in shared memory and registers for the loop over {counter}{where}",
        partial(made, parts.kernel),
        (0.6 if leads else 0.94) - less,
        Hypothesis(_REQUESTS, "lower", "each element is loaded once a block", (4.0, 64.0)),
        points,
        changed if parts.exact else (*changed, "the order of additions"),
    )


def _numbers(kernel: Kernel, loop: Loop) -> dict[str, int]:
    """Scalars that say how many rounds the short loops inside of one make, with their values."""
    given = kernel.facts.scalars if kernel.facts is not None else {}
    axes, names, total = kernel.axes(), set[str](), 1
    for inner in nested(loop):
        axis = axes.get(inner)
        if axis is None or axis.stop is None:
            return {}
        names |= kernel.reading.symbols.made_of(axis.stop)
        total *= rounds(kernel, axis) or 0
    names -= kernel.program.values.keys()
    short = 0 < total <= _SHORT and names <= given.keys()
    return {name: int(given[name]) for name in sorted(names)} if short else {}


def _split(
    parts: Contraction,
    at: int,
    key: str,
    counter: str,
    points: tuple[Point, ...],
    changed: tuple[str, ...],
    tiled: Callable[[Kernel], Kernel | Refused],
) -> Iterator[Site]:
    """Blocks that share the rounds as well, where there are too few tiles; and a sum of theirs."""
    made = chunk(parts.kernel, at, 1, PARTS) if points else Refused("")
    if isinstance(made, Refused):
        return
    exact = all(r.exact for r in parts.reductions)
    yield Site(
        f"{key} split",
        f"tiles in shared memory and registers, whose blocks share the loop over {counter}",
        partial(tiled, front(made)),
        0.95,
        Hypothesis(_REQUESTS, "lower", "each element is loaded once a block", (4.0, 64.0)),
        points,
        changed if exact else (*changed, "the order of additions"),
    )


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
        return share * best * (1.0 if waves > 1 else _ALONE) / left


def _filling(product: Blocking) -> _Filling | None:
    parts, kernel = product.parts, product.parts.kernel
    rows, columns = (value(kernel, f) for f in (parts.outputs.rows, parts.outputs.columns))
    chip = CHIPS.get(kernel.chip)
    if chip is None or not rows or not columns:
        return None
    others = math.prod(kernel.facts.grid[2:]) if kernel.facts is not None else 1
    found = _Filling(product, chip.sms, 0, others, rounds(kernel, parts.axis))
    return replace(found, outputs=found.blocks(Tile(1, 1)))


def _worth_tiles(product: Blocking) -> None:
    """Raise NotLegal where tiles would be all but empty, or more than a grid may have of them."""
    filling = _filling(product)
    if filling is None:
        return
    if filling.others > MOST_BLOCKS:
        raise NotLegal("its products are more than a grid has blocks along z")
    sizes = [filling.blocks(tile) * tile.rows * tile.columns for tile, _ in _SHAPES]
    if filling.outputs < _EMPTY * min(sizes):
        raise NotLegal("its products are too small for tiles")


def _split_points(product: Blocking) -> tuple[float, tuple[Point, ...]]:
    """Large tiles, in as many parts as fill the chip, and how many times as much of it these use.

    None where tiles alone use far more, or rounds are few. What parts leave in memory is little
    beside what they load.
    """
    filling, name = _filling(product), product.old.fresh("PARTS")
    if filling is None or not filling.length:
        return 0.0, ()
    found = list[tuple[float, Point]]()
    for tile, share in _SHAPES:
        blocks = filling.blocks(tile)
        for count in PARTS:
            point = _point(product, tile, -(-blocks * count // filling.sms))
            if point and (count == 1 or filling.length >= count * _EACH):
                found.append((filling.rate(tile, share, count), {**point, name: count}))
    ranked = sorted((pair for pair in found if pair[1][name] > 1), key=lambda pair: -pair[0])
    alone = max((rate for rate, point in found if point[name] == 1), default=0.0)
    if not ranked or ranked[0][0] < alone * (_WORTH if alone >= _FULL else _NEAR):
        return 0.0, ()
    gain = ranked[0][0] / alone if alone else math.inf
    return gain, tuple(point for _, point in ranked[:_MOST_POINTS])


def _contraction(kernel: Kernel, number: int) -> Refused | tuple[Contraction, int]:
    """The parts of the loop with this number, and its number then.

    If need be with the rounds of the loops around it as blocks, or with rows of another axis.
    """
    refused: Refused | None = None
    for whole, at in _turned(kernel, number):
        try:
            return Contraction(whole, loops_in(whole.function.body)[at]), at
        except NotLegal as reason:
            refused = refused or Refused(reason.reason, reason.line)
    assert refused is not None
    return refused


def _turned(kernel: Kernel, number: int) -> Iterator[tuple[Kernel, int]]:
    """A kernel, and other ways to have its outputs along the axes of its launch."""
    loops = loops_in(kernel.function.body)
    around = [at for at, o in enumerate(loops) if loops[number] in set(loops_in(o.body))]
    while around:
        at = around.pop(0)
        found = spread_rounds(kernel, at)
        if isinstance(found, Refused):
            found = spread_rounds(where_legal(folded, kernel), at)
        if isinstance(found, Refused):
            break
        # What was inside of the loop is one number further up now.
        kernel, number, around = found, number - 1, [at - 1 for at in around]
    yield kernel, number
    digits = (partial(exchange_rows, at=at) for at in range(_DIGITS))
    for made in (*digits, partial(as_blocks, axis="y"), partial(as_blocks, axis="x")):
        found = made(kernel)
        if isinstance(found, Kernel):
            yield found, number


def _points(product: Blocking) -> tuple[Point, ...]:
    """The tiles that keep most multiprocessors busy, by whole waves of blocks."""
    filling = _filling(product)
    if filling is None:
        chosen = (_SHAPES[0][0], Tile(), Tile(32, 32, 32, 2, 2), _first(product))
        return tuple(p for tile in chosen if (p := _point(product, tile, 1024)))[:2]
    best = sorted(_SHAPES, key=lambda shape: filling.rate(*shape), reverse=True)
    most = ((tile, -(-filling.blocks(tile) // filling.sms)) for tile, _ in best)
    found = [p for tile, each in most if (p := _point(product, tile, each))]
    return tuple(found[:_MOST_POINTS]) or (_point(product, _first(product), 1),)


def _first(product: Blocking) -> Tile:
    """The tile that a program begins with: one that a multiprocessor has room for."""
    for tile in (Tile(), *(tile for tile, _ in _SHAPES)):
        if _point(product, tile, 1):
            return tile
    raise NotLegal("a multiprocessor has no room for its tiles")


def _shallow(product: Blocking, tile: Tile) -> Tile:
    """A tile with no more rounds than there are, where that is possible: others are for nothing."""
    count = rounds(product.parts.kernel, product.parts.axis) or tile.deep
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
