"""Which values of tuned names are worth a try, by how they fill a chip; never what is legal."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from itertools import product

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.costs import rough_seconds
from optiml_magic.kernels.primitives.cutting import block_names, relaunched
from optiml_magic.kernels.primitives.filling import filling
from optiml_magic.kernels.primitives.sizes import threads
from optiml_magic.model.facts import Facts
from optiml_magic.source.expressions import parse_expression

_Point = Mapping[str, int]
#: Of the whole chip, to start one block: as estimates have it, see ``profilers.estimate``.
_START_CYCLES = 1.2


def shapes(kernel: Kernel, values: Mapping[str, Collection[int]], most: int) -> tuple[_Point, ...]:
    """The blocks with these extents that fill the chip best, of these the nearest first."""
    names = block_names(kernel, values)
    launch = relaunched(kernel, {a: parse_expression(name) for a, name in names.items()})
    present = {names[a]: kernel.block["xyz".index(a)] or 1 for a in values}
    facts = Facts((kernel.facts,), {}, 0.0, 0.0, kernel.chip) if kernel.facts else None
    points = (dict(zip(names.values(), p, strict=True)) for p in product(*values.values()))
    known = kernel.program.values
    started = {axis: kernel.block["xyz".index(axis)] or 1 for axis in "xyz"}
    ranked = [
        (filling(launch, known | p, facts)
         * _busy(kernel, started | {a: p[name] for a, name in names.items()}), p)
        for p in points if p != present
    ]  # fmt: skip
    return _best(ranked, present, most)


def _busy(kernel: Kernel, block: Mapping[str, int]) -> float:
    """The share of the time that blocks take to start one by one, which they have to do."""
    chip, count, seconds = CHIPS.get(kernel.chip), threads(kernel), rough_seconds(kernel)
    if chip is None or not count or seconds is None:
        return 1.0
    starting = count / math.prod(block.values()) * _START_CYCLES / chip.clock
    return min(1.0, seconds / starting)


def _best(
    ranked: Iterable[tuple[float, _Point]], present: Mapping[str, int], most: int
) -> tuple[_Point, ...]:
    """The first of the points by what they fill, in eighths, then by how far they are away."""

    def place(found: tuple[float, _Point]) -> tuple[int, float]:
        share, point = found
        away = sum(abs(math.log2(max(v, 1) / max(present[n], 1))) for n, v in point.items())
        return -round(8 * share), away

    ordered = sorted((found for found in ranked if found[0] > 0), key=place)
    return tuple(point for _, point in ordered[:most])
