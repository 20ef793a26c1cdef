"""Counting some blocks of a large grid: which ones, and what that says of all of them.

Blocks fall into two strata, since those at the last index of an axis are often partial: the edge
and the interior. From each, blocks spread by the golden ratio run in groups; the differences of the
groups give the standard error of a stratum (random groups; Cochran, "Sampling Techniques"). A few
pilots are counted first; a grid that fits into the budget by their cost is counted whole.

Everything follows from counts, nothing from clocks or cores: one launch, one set of figures.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optiml_magic.emulator.crew import Blocks, Crew
from optiml_magic.emulator.records import Fields
from optiml_magic.emulator.tally import Raw, combined
from optiml_magic.model.counters import KernelCounters, Sampled

Grid = tuple[int, int, int]
Tally = Callable[[Raw, int, int], KernelCounters]  # and distinct sectors read and written

FEW = 256  # blocks; a grid of no more is always counted whole
MOST = 1 << 22  # blocks; a larger grid is drawn from as many of its blocks
_PILOTS = 8
_MARGIN = 1.25  # on the pilots' cost, for grids whose blocks differ
_LEAST = 128  # blocks in a sample
_GROUPS = 16
_STUDENT = {2: 12.71, 3: 4.30, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 16: 2.13}


class Stopped(Exception):  # noqa: N818  # a block faulted, which is no error of ours
    def __init__(self, fault: Fields) -> None:
        super().__init__()
        self.fault = fault


@dataclass(frozen=True)
class _Stratum:
    population: int  # blocks that it stands for, the sampled ones included
    groups: list[tuple[int, Raw]]  # blocks and counts of each


def count_some(
    crew: Crew, grid: Grid, budget: int, tally: Tally, *, complete: bool
) -> KernelCounters:
    """The counters of a grid of more than FEW blocks from about ``budget`` thread instructions.

    ``complete`` runs the blocks that are not counted as well, for launches that build on this one.
    Raises Stopped at a fault.
    """
    total = math.prod(grid)
    edges, interior = spread(grid)
    pilots = np.concatenate([edges[:2], interior[: _PILOTS - len(edges[:2])]])
    pilot = _counted(crew, pilots)
    cost = tally(pilot, 0, 0).thread_instructions / len(pilots)
    wanted = max(_LEAST, int(budget / max(cost, 1.0)))
    if _MARGIN * cost * total <= budget or 2 * wanted >= total:
        _run_gaps(crew, pilots, total)
        read, written = (int(found.sum()) for found in crew.touched())
        return tally(crew.counted(), read, written)
    beyond = total - math.prod(max(extent - 1, 1) for extent in grid)  # on the edge
    chosen = [pilots]
    strata = []
    snapshots = [(len(pilots), *crew.touched())]
    for blocks, size in ((edges, beyond), (interior, total - beyond)):
        left = blocks[np.isin(blocks, pilots, invert=True)]
        population = size - (len(blocks) - len(left))
        take = left[: min(population, max(2 * _GROUPS, round(wanted * population / total)))]
        if not len(take):
            continue
        groups = np.array_split(take, min(_GROUPS, len(take)))
        counts = []
        for group in groups:
            counts.append((len(group), _counted(crew, group)))
            snapshots.append((snapshots[-1][0] + len(group), *crew.touched()))
        strata.append(_Stratum(population, counts))
        chosen += groups
    ran = np.concatenate(chosen)
    if complete:
        rest = np.setdiff1d(np.arange(total), ran)
        _run(crew, rest, count=False)
    read, written = (_grown(snapshots, at, crew.spans, total) for at in (1, 2))
    found = tally(_estimate(pilot, strata), read, written)
    error = _error(found, strata, tally)
    return replace(found, sampled=Sampled(len(ran), total, error))


def spread(grid: Grid) -> tuple[Blocks, Blocks]:
    """Linear indices on the edge and in the interior, each in an order that covers the grid."""
    total = math.prod(grid)
    step = round(total / ((1 + math.sqrt(5)) / 2)) | 1
    while math.gcd(step, total) != 1:
        step += 2
    pool = (np.arange(min(total, MOST), dtype=np.int64) * step + total - 1) % total
    edge = np.zeros(len(pool), bool)
    for extent, below in zip(grid, (1, grid[0], grid[0] * grid[1]), strict=True):
        if extent > 1:
            edge |= pool // below % extent == extent - 1
    return pool[edge], pool[~edge]


def _run(crew: Crew, blocks: Blocks, *, count: bool = True) -> None:
    order = np.ascontiguousarray(blocks)
    fault = crew.run(0, len(order), order, count=count)
    if fault is not None:
        raise Stopped(fault)


def _run_gaps(crew: Crew, done: Blocks, total: int) -> None:
    """All blocks but those that are done already."""
    marks = [-1, *sorted(done.tolist()), total]
    for before, after in itertools.pairwise(marks):
        fault = crew.run(before + 1, after, count=True) if after > before + 1 else None
        if fault is not None:
            raise Stopped(fault)


def _counted(crew: Crew, blocks: Blocks) -> Raw:
    before = crew.counted()
    _run(crew, blocks)
    return combined([(1.0, crew.counted()), (-1.0, before)])


def _estimate(pilot: Raw, strata: Sequence[_Stratum]) -> Raw:
    """Each stratum's counts scaled to its population, and the pilots as they are."""
    terms = [(1.0, pilot)]
    for stratum in strata:
        ran = sum(blocks for blocks, _ in stratum.groups)
        terms += [(stratum.population / ran, raw) for _, raw in stratum.groups]
    return combined(terms)


def _error(found: KernelCounters, strata: Sequence[_Stratum], tally: Tally) -> float:
    """Half the 95 % interval over the total, of the quantity that is known worst."""
    variances = np.zeros(len(_figures(found)))
    for stratum in strata:
        ran, count = sum(blocks for blocks, _ in stratum.groups), len(stratum.groups)
        if count < 2 or ran >= stratum.population:
            continue
        means = np.array([_figures(tally(raw, 0, 0)) / blocks for blocks, raw in stratum.groups])
        student = next(t for groups, t in sorted(_STUDENT.items()) if groups >= min(count, 16))
        unseen = 1 - ran / stratum.population
        spread_ = student**2 * means.var(axis=0, ddof=1) / count * unseen
        variances += stratum.population**2 * spread_
    totals = _figures(found)
    return float(np.max(np.sqrt(variances) / np.maximum(totals, 1.0)))


def _figures(counters: KernelCounters) -> NDArray[np.float64]:
    """What the error is stated for: instructions, sectors, wavefronts."""
    memory = counters.memory
    return np.array(
        [
            counters.warp_instructions,
            counters.thread_instructions,
            sum(m.sectors for m in memory),
            sum(m.wavefronts + m.contention for m in memory),
        ],
        np.float64,
    )


def _grown(
    snapshots: Sequence[tuple[int, NDArray[np.int64], NDArray[np.int64]]],
    at: int,
    spans: NDArray[np.int64],
    total: int,
) -> int:
    """Distinct sectors of the whole grid: the growth over the second half of the sample goes on.

    A power law: blocks with data of their own keep its exponent at 1, data that all share at 0. No
    allocation can have more sectors touched than it has.
    """
    blocks, now = snapshots[-1][0], snapshots[-1][at]
    half = min(snapshots, key=lambda snapshot: abs(2 * snapshot[0] - blocks))
    earlier = np.maximum(half[at], 1)
    exponent = np.log(np.maximum(now, 1) / earlier) / math.log(blocks / half[0])
    grown = now * (total / blocks) ** np.clip(exponent, 0.0, 1.0)
    return int(np.rint(np.minimum(grown, np.diff(spans))).sum())
