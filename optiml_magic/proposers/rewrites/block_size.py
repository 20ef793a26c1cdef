"""The block's extents as tuned parameters, and other values of those tuned already."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import product

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused
from optiml_magic.kernels.primitives.cutting import block_names, freedom, relaunched, tuned
from optiml_magic.kernels.primitives.filling import filling
from optiml_magic.model.facts import Facts
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.model.idea import Idea
from optiml_magic.model.refusal import Refusal
from optiml_magic.model.view import View
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Point, Site
from optiml_magic.source.expressions import parse_expression
from optiml_magic.source.program import Program

_LINE = (64, 128, 256, 512, 1024)
_PLANE = ((8, 16, 32, 64, 128), (1, 2, 4, 8, 16, 32), ())
_MOST_SHAPES, _MOST_STEPS = 3, 6
_EXPECTED = Hypothesis(
    TIME, "lower", "another block size lets more warps be resident, or reuses more", (1.0, 1.3)
)


class BlockSize(KernelRule):
    """``block(256)`` becomes ``block(BLOCK)`` with ``BLOCK`` tuned; what is tuned takes a step."""

    name = "block_size"
    teaches = (
        "The block's shape decides how many warps fit a multiprocessor and how much each block "
        "reuses; which is best depends on the chip, so it is measured."
    )

    def propose(self, program: Program, view: View) -> Iterator[Idea | Refusal]:
        """Blocks of other extents, and all tuned names of the program one step further."""
        yield from super().propose(program, view)
        points = tuple(_neighbours(program, view.facts))
        if points:
            kernel = Kernel(program, program.launches[0])
            site = Site("step", "another value", lambda: kernel, 0.35, _EXPECTED, points)
            yield from self._ideas(kernel, site)

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        if kernel.function.launch_bounds:
            raise NotLegal("its launch bounds say how many threads a block has")
        values, refused = {}, []
        sets = (_LINE,) if len(kernel.launch.block) == 1 else _PLANE
        for axis, wanted, own in zip("xyz", sets, kernel.block, strict=False):
            if own is None or not wanted or (own == 1 and len(sets) > 1):
                continue
            try:
                free = freedom(kernel, axis)
            except NotLegal as reason:
                refused.append(Refused(reason.reason, reason.line))
                continue
            extents = {e for e in wanted if free.allows(e, own)} | {own}
            if len(extents) > 1:
                values[axis] = tuple(sorted(extents))
        if not values:
            yield from refused[:1]
            return
        points = _shapes(kernel, values)
        if points:
            yield Site("block", "tuned block", partial(_apply, kernel, values), 0.35, _EXPECTED,
                       points)  # fmt: skip


def _apply(kernel: Kernel, values: Mapping[str, tuple[int, ...]]) -> Kernel | Refused:
    return tuned(kernel, values)


def _shapes(kernel: Kernel, values: Mapping[str, tuple[int, ...]]) -> tuple[Point, ...]:
    """The blocks that fill the chip best, of these the nearest first."""
    names = block_names(kernel, values)
    launch = relaunched(kernel, {a: parse_expression(name) for a, name in names.items()})
    present = {names[a]: kernel.block["xyz".index(a)] or 1 for a in values}
    facts = Facts((kernel.facts,), {}, 0.0, 0.0, kernel.chip) if kernel.facts else None
    points = (dict(zip(names.values(), p, strict=True)) for p in product(*values.values()))
    known = kernel.program.values
    ranked = [(filling(launch, known | p, facts), p) for p in points if p != present]
    return _best(ranked, present, _MOST_SHAPES)


def _neighbours(program: Program, facts: Facts | None) -> tuple[Point, ...]:
    """Other values of one tuned name each that fill the chip best, of these the nearest first."""
    present = program.values
    if len(present) < len(program.tunes) or not program.launches:
        return ()
    conditions = [t.condition for t in program.tunes if t.condition is not None]
    ranked = []
    for tune in program.tunes:
        for value in tune.values:
            values = present | {tune.name: value}
            if value != tune.value and all(c.evaluate(values) for c in conditions):
                share = min(filling(launch, values, facts) for launch in program.launches)
                ranked.append((share, {tune.name: value}))
    return _best(ranked, present, _MOST_STEPS)


def _best(
    ranked: Iterable[tuple[float, Point]], present: Mapping[str, int], most: int
) -> tuple[Point, ...]:
    """The first of the points by what they fill, in eighths, then by how far they are away."""

    def place(found: tuple[float, Point]) -> tuple[int, float]:
        share, point = found
        away = sum(abs(math.log2(max(v, 1) / max(present[n], 1))) for n, v in point.items())
        return -round(8 * share), away

    turns: list[tuple[int, int, Point]] = []
    taken: Counter[str] = Counter()
    for share, point in sorted(ranked, key=place):
        if share > 0:
            name = next(iter(point)) if len(point) == 1 else ""
            turns.append((-round(8 * share), taken[name] if name else 0, point))
            taken[name] += 1
    turns.sort(key=lambda turn: turn[:2])  # each name once before one of them comes again
    return tuple(point for _, _, point in turns[:most])
