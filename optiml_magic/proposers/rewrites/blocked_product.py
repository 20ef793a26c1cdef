"""Loops that combine rows with columns, as products of tiles in shared memory and registers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.alongside import products_alongside
from optiml_magic.kernels.primitives.base import (
    Kernel,
    NotLegal,
    Refused,
    where_legal,
)
from optiml_magic.kernels.primitives.blocked import (
    Blocking,
    block_outputs,
)
from optiml_magic.kernels.primitives.bounded import bounded
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.collapsed import collapse, nested
from optiml_magic.kernels.primitives.counted import all_counted, as_counted
from optiml_magic.kernels.primitives.direct import in_full
from optiml_magic.kernels.primitives.dispersed import item_a_thread
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.evenly import evenly
from optiml_magic.kernels.primitives.exchanged import as_blocks, exchange_rows, folded
from optiml_magic.kernels.primitives.innermost import innermost
from optiml_magic.kernels.primitives.inward import all_inward
from optiml_magic.kernels.primitives.multiplied import multiplied
from optiml_magic.kernels.primitives.operands import Contraction, combining
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.pulled import pulled
from optiml_magic.kernels.primitives.rectangular import all_rectangular
from optiml_magic.kernels.primitives.renewed import renewed
from optiml_magic.kernels.primitives.residues import sieved_by_residue
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.kernels.primitives.sized import divisors, sized
from optiml_magic.kernels.primitives.sizes import rounds
from optiml_magic.kernels.primitives.spread import spread_rounds
from optiml_magic.kernels.primitives.uncentred import uncentred
from optiml_magic.kernels.primitives.unravelled import unravelled
from optiml_magic.kernels.primitives.unravelled_planes import unravelled_planes
from optiml_magic.kernels.primitives.whole_elements import whole_elements
from optiml_magic.kernels.symbols import THREADS
from optiml_magic.kernels.tree import Loop
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.model.space import Point
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.product_tiles import (
    PARTS,
    WORTH,
    best_rate,
    first_tile,
    points_of,
    split_points,
    worth_tiles,
)

_REQUESTS = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
_BEHIND = 0.9  # their chance then: ours
_IDLE = 0.2  # of the chip's best, below which rows of threads that share rounds come first: ours
_MOSTLY_IDLE = 0.92  # the chance of parts then: ours
_SHORT = 65536  # rounds of inner loops that are worth a number in the text: ours
_SMALL = 16  # a divisor of an index that is a number in the text: ours
_DIGITS = 3  # of the number of a block that may tell which filter it is: image, filter, depth
_LESS = 0.005  # of a chance, by which tiles of other arithmetic come after those of the same: ours
_LONG = 128  # rounds from which each pair once is worth stores that lie a row apart: ours
_SHORTER = 0.1  # of a chance less for fewer: ours


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
        pulled, *PLAIN, item_a_thread, bounded, planar, in_full, evenly, unravelled,
        sieved_by_residue, all_rectangular, all_inward, whole_elements, in_register,
        products_alongside, renewed,
    )  # fmt: skip
    teaches = (
        "Each thread read a row and a column for one output, so every element came through the "
        "caches once for each of its uses. A block that brings tiles of both into shared memory, "
        "and a thread that holds several outputs in registers, use each element many times; the "
        "next tiles travel while the present ones are computed with. A product whose threads add "
        "to its elements by atomic operations has a thread for each element first. Of bytes four "
        "rounds are one instruction, and zero points are taken out of the sum."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        done: list[Loop] = []
        for number, loop in enumerate(loops_in(kernel.function.body)):
            if loop in done or not combining(kernel, loop):
                continue
            alone = _from_zero(where_legal(innermost, kernel, number), number)
            inside = [*nested(loops_in(alone.function.body)[number])]
            known = _numbers(alone, inside)
            if known:  # such as the extents of a filter, of which a column has a digit each
                known |= divisors(alone, _SMALL, of=THREADS)
            given = where_legal(sized, alone, known) if known else alone
            whole = collapse(given, number) if inside else kernel
            if isinstance(whole, Refused):
                yield whole
                continue
            done += loops_in(loop.body) if any(nested(loop)) else []
            ready = all_counted(whole, (number,))
            where = "".join(f", where {n} is {v}" for n, v in known.items())
            if isinstance(ready, Refused):
                yield ready
                continue
            found = [*_in_forms(ready, number, where)]
            done += loops_in(loop.body) if any(isinstance(s, Site) for s in found) else []
            yield from found


def _from_zero(kernel: Kernel, number: int) -> Kernel:
    """The kernel whose loops in each other count from 0: `for (int dy = -1; dy <= 1; ++dy)`."""
    inside = [*nested(loops_in(kernel.function.body)[number])]
    for at in range(number, number + len(inside) + 1) if inside else ():
        counting = as_counted(kernel, at, is_simple)
        kernel = counting if isinstance(counting, Kernel) else kernel
    return kernel


def _in_forms(ready: Kernel, number: int, where: str) -> Iterator[Site | Refused]:
    """Tiles for the loop with this number, in other forms of its sum as well."""
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
    found = contraction(ready, number)
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
        worth_tiles(product)
        points, first = points_of(product), first_tile(product)
    except NotLegal as reason:
        yield Refused(reason.reason, reason.line)
        return
    counter = parts.axis.variable.name if parts.axis.variable is not None else "its loop"
    gain, split = split_points(product)
    changed = form.changed if form else ()
    leads, less = gain >= WORTH, form.less if form else 0.0
    if mirrored:
        long = (rounds(parts.kernel, parts.axis) or _LONG) >= _LONG
        less += -2 * _LESS if long else _SHORTER
    made = partial(block_outputs, at=at, tile=first, mirrored=mirrored)
    for site in _split(parts, at, key, f"{counter}{where}", split, changed, made):
        prior = site.prior if best_rate(product) >= _IDLE else _MOSTLY_IDLE
        yield replace(site, prior=(prior if leads else _BEHIND) - less)
    yield Site(
        key,
        f"tiles in shared memory and registers for the loop over {counter}{where}",
        partial(made, parts.kernel),
        (0.6 if leads else 0.94) - less,
        Hypothesis(_REQUESTS, "lower", "each element is loaded once a block", (4.0, 64.0)),
        points,
        changed if parts.exact else (*changed, "the order of additions"),
    )


def _numbers(kernel: Kernel, loops: Sequence[Loop]) -> dict[str, int]:
    """Scalars that say how many rounds these short loops make, with their values."""
    given = kernel.facts.scalars if kernel.facts is not None else {}
    axes, names, total = kernel.axes(), set[str](), 1
    for inner in loops:
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


def contraction(kernel: Kernel, number: int) -> Refused | tuple[Contraction, int]:
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
    digits = [partial(exchange_rows, at=at) for at in range(_DIGITS)]
    ways = (*digits, partial(as_blocks, axis="y"), partial(as_blocks, axis="x"))
    yield kernel, number
    for found in (way(kernel) for way in ways):
        if isinstance(found, Kernel):
            yield found, number
    planes = unravelled_planes(kernel)
    if isinstance(planes, Kernel):
        yield from _turned(planes, number)
