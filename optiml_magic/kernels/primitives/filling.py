"""How well a launch fills a chip, by arithmetic: for choosing numbers, never for what is legal."""

from __future__ import annotations

import math
from collections.abc import Mapping

from optiml_magic.chips import CHIPS
from optiml_magic.errors import SourceError
from optiml_magic.model.facts import Facts
from optiml_magic.source.directives import LaunchDirective

_WARP, _MOST_THREADS = 32, 1024
_ENOUGH = 0.5  # of the warps that fit: more of them hide little more latency; ours
_NARROW = 0.25  # power of the share of a warp that is along x: ours


def filling(launch: LaunchDirective, values: Mapping[str, int], facts: Facts | None) -> float:
    """The share of a chip that a launch keeps busy with these tuned values, 0 where it cannot run.

    It counts lanes without a thread, multiprocessors without a block and warps too few to hide
    latency. Without facts only the first is known.
    """
    known = next((f for f in facts.launches if f.line == launch.line), None) if facts else None
    chip = CHIPS.get(facts.chip) if facts is not None else None
    env = {n: int(v) for n, v in known.scalars.items()} if known is not None else {}
    env |= values
    if chip is not None:
        env["sm_count"] = chip.sms
    shapes = {n: a.shape for n, a in known.arrays.items()} if known is not None else {}
    try:
        block = [size.evaluate(env, shapes) for size in launch.block]
    except SourceError:
        return 1.0
    threads = math.prod(block)
    if min(block) < 1 or threads > _MOST_THREADS:
        return 0.0
    warps = -(-threads // _WARP)
    share = threads / (warps * _WARP)
    if len(block) > 1:
        share *= min(1.0, block[0] / _WARP) ** _NARROW
    try:
        blocks = math.prod(size.evaluate(env, shapes) for size in launch.grid)
    except SourceError:
        return share
    if chip is None or blocks < 1:
        return share
    each = -(-blocks // chip.sms)
    resident = min(each, chip.blocks_per_sm, chip.warps_per_sm // warps)
    hidden = min(1.0, resident * warps / chip.warps_per_sm / _ENOUGH)
    return share * hidden * blocks / (each * chip.sms)
