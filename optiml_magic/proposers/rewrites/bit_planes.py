"""Counts of elements that differ between two rows, 32 elements at a time as planes of bits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.kernels.expressions import Binary, Call
from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, where_legal
from optiml_magic.kernels.primitives.bit_planes import BITS, Planes, bit_planes
from optiml_magic.kernels.primitives.blocked import Blocking, block_outputs
from optiml_magic.kernels.primitives.chunks import chunk, front
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.effects import loops_in
from optiml_magic.kernels.primitives.in_ints import in_ints
from optiml_magic.kernels.primitives.operands import Contraction, combining
from optiml_magic.kernels.primitives.sizes import rounds, value
from optiml_magic.kernels.primitives.unfolded import called_alone
from optiml_magic.kernels.primitives.untiled import counts_alone
from optiml_magic.kernels.tree import Loop, expressions
from optiml_magic.model.hypothesis import Hypothesis
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct, contraction
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.proposers.rewrites.product_tiles import (
    PARTS,
    WORTH,
    first_tile,
    points_of,
    split_points,
    worth_tiles,
)

_INSTRUCTIONS = "smsp__inst_executed.sum"
_LEAST = 2 * BITS  # rounds below which words have few elements: ours
_FEWEST = 32  # rows, and columns, for which it pays to look at each element twice before: ours
_SOME = 8  # planes of a word, which is how many rounds it has: a guess of ours
_PRIOR, _MIRRORED = 0.96, 0.97
_FIRST = 0.005  # of a chance, by which blocks that share rounds come first: ours


class BitPlanes(KernelRule):
    """Hamming distances of all pairs, matching genotypes: `count += a[i, k] != b[j, k]`."""

    name = "bit_planes"
    before = BlockedProduct.before
    teaches = (
        "Each element of a row was compared with one of a column by itself: a comparison and an "
        "addition for each. A launch before finds which bits tell any two elements apart, which "
        "are few where values are small, and another lays these bits of 32 elements into a word "
        "each. Two words differ where their elements do, so that an exclusive or and an or for "
        "each bit compare 32 elements, and `__popc` counts what differs. The words are brought "
        "to shared memory in tiles, and threads hold several outputs in registers."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if not any(_compares(kernel, loop) for loop in loops_in(kernel.function.body)):
            return
        kernel = where_legal(in_ints, kernel)
        for number, loop in enumerate(loops_in(kernel.function.body)):
            if not _compares(kernel, loop) or not combining(kernel, loop):
                continue
            ready = as_counted(kernel, number, counts_alone)
            if isinstance(ready, Refused):
                yield ready
                continue
            found = contraction(ready, number)
            if isinstance(found, Refused):
                yield found
                continue
            yield from _tiled(*found)


def _compares(kernel: Kernel, loop: Loop) -> bool:
    """Whether a loop asks in its own rounds, or by a function, whether two values are alike."""
    inside = [*expressions(loop.body)]
    calls = [called_alone(kernel, e) for e in inside if isinstance(e, Call)]
    inside += [e for function in calls if function is not None for e in expressions(function.body)]
    return not loops_in(loop.body) and any(
        isinstance(e, Binary) and e.op in ("==", "!=") for e in inside
    )


def _tiled(parts: Contraction, at: int) -> Iterator[Site | Refused]:
    """Tiles of planes for all outputs, and for those of one side of the diagonal."""
    kernel, line = parts.kernel, parts.loop.line
    long = rounds(kernel, parts.axis)
    if long is not None and long < _LEAST:
        yield Refused(f"{long} elements are too few for words of {BITS}", line)
        return
    counts = [value(kernel, form) for form in (parts.outputs.rows, parts.outputs.columns)]
    fewest = min((n for n in counts if n is not None), default=_FEWEST)
    if fewest < _FEWEST:
        yield Refused(f"elements are compared {fewest} times each", line)
        return
    try:
        planes = bit_planes(kernel, at)
        yield from _sites(planes, at, long)
    except NotLegal as reason:
        yield Refused(reason.reason, reason.line)
        return
    try:
        yield from _sites(planes, at, long, mirrored=True)
    except NotLegal:
        return


def _sites(planes: Planes, at: int, long: int | None, *, mirrored: bool = False) -> Iterator[Site]:
    """Tiles of all words, and in front of them tiles that share these out where tiles are few."""
    kernel, words = planes.kernel, planes.words
    parts = Contraction(kernel, loops_in(kernel.function.body)[at])
    product = Blocking(parts, mirrored=mirrored, words=words)
    worth_tiles(product)
    tiled = partial(block_outputs, at=at, tile=first_tile(product), mirrored=mirrored, words=words)
    key, prior = (f"planes {at} mirrored", _MIRRORED) if mirrored else (f"planes {at}", _PRIOR)
    pairs = ", each pair once" if mirrored else ""
    hypothesis = Hypothesis(_INSTRUCTIONS, "lower", "a word compares 32 elements", (4.0, 64.0))
    length = -(-long // BITS) * _SOME if long is not None else None
    gain, points = split_points(product, length)
    shared = chunk(kernel, at, 1, PARTS, words.planes) if points else Refused("")
    if isinstance(shared, Kernel):
        yield Site(
            f"{key} split",
            f"compare 32 elements at once as planes of bits, in tiles that share them out{pairs}",
            partial(tiled, front(shared)), prior + (_FIRST if gain >= WORTH else -_FIRST),
            hypothesis, points,
        )  # fmt: skip
    yield Site(
        key, f"compare 32 elements at once as planes of bits, in tiles{pairs}",
        partial(tiled, kernel), prior, hypothesis, points_of(product),
    )  # fmt: skip
