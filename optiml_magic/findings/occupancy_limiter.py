"""Low theoretical occupancy, with the resource that limits it.

Source: CUDA C++ Best Practices Guide, "Occupancy". Low occupancy matters where latency is to be
hidden; a kernel with enough independent work per thread can do without (Volkov 2010), hence a
warning at most. Where the number of blocks is the limit, larger ones cost nothing, so that half is
low already. Multiprocessors without a block are another matter: they do nothing at all.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_LOW = 50.0  # percent of the resident warps that the chip allows
_FULL = 0.9  # waves; a grid of fewer blocks is what leaves warps out
_IDLE = 0.5  # blocks for each multiprocessor, up to which most of the chip is idle
_MOST = 32.0  # times faster: a grid that fills the chip runs into other limits
_WORTH_SMALLER = 1.1  # multiprocessors for each block, from which smaller blocks reach more of them
_GRID = "launch__grid_size"
_OCCUPANCY = "sm__maximum_warps_per_active_cycle_pct"
_ADVICE = {
    "registers": "Use fewer registers: smaller blocks, __launch_bounds__, or less unrolling.",
    "shared": "Use less shared memory per block, or smaller tiles.",
    "warps": "Choose a block size that divides the warps of a multiprocessor.",
    "blocks": "Use larger blocks: the number of blocks is the limit.",
}


class OccupancyLimiter:
    """Fires once for the kernel, naming the limiter."""

    name = "occupancy_limiter"
    classes: frozenset[RooflineClass] = frozenset({"memory", "latency", "mixed"})
    metrics: tuple[str, ...] = ()

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        measured = subject.measured
        percent = measured.get(_OCCUPANCY)
        waves = measured.get("launch__waves_per_multiprocessor")
        limits = {n: measured.get(f"launch__occupancy_limit_{n}") for n in _ADVICE}
        known = {name: value for name, value in limits.items() if value is not None}
        if percent is None or waves is None or not known:
            return
        limiter = "grid" if waves < _FULL else min(known, key=lambda name: known[name])
        if percent > _LOW or (percent == _LOW and limiter != "blocks"):
            return
        blocks, sms = measured.get(_GRID), subject.chip.sms
        if blocks is not None and 0 < blocks <= _IDLE * sms:
            yield self._idle(int(blocks), sms)
            return
        most = 100.0 / max(percent, 1.0)
        if limiter == "grid":
            cause = f"The grid fills only {100 * waves:.0f} % of what fits on the chip at once"
            actions = _more_threads(blocks or 0.0, sms)
            gain = min(1.5, most / 2)
        else:
            fit = round(known[limiter])
            more = "Only one block fits" if fit == 1 else f"No more than {fit} blocks fit"
            cause = f"{more} on a multiprocessor"
            factor = (1.1, max(1.1, most))
            actions = (Action(_ADVICE[limiter], "block_size", _OCCUPANCY, "higher", factor),)
            gain = min(3.0, most if limiter == "blocks" else most / 2)
        yield Finding(
            tool=self.name,
            severity="warning" if percent < _LOW / 2 and limiter != "grid" else "note",
            cause=f"{cause}; the limit is {limiter}; {percent:.0f} % of the warps are resident.",
            evidence=(Evidence(_OCCUPANCY, percent, _LOW, "%", "estimated"),),
            actions=actions,
            gain=(1.0, gain),
            reason="more resident warps hide more latency, where there is latency to hide",
        )

    def _idle(self, blocks: int, sms: int) -> Finding:
        most = min(_MOST, sms / blocks)
        return Finding(
            tool=self.name,
            severity="warning",
            cause=f"A grid of {blocks} {'block' if blocks == 1 else 'blocks'} leaves "
            f"{sms - blocks} of {sms} multiprocessors without any.",
            evidence=(Evidence(_GRID, blocks, _IDLE * sms, "block", "compiler"),),
            actions=_more_threads(blocks, sms),
            gain=(1.0, most),
            reason="multiprocessors that have nothing to do take their share of the work",
        )


def _more_threads(blocks: float, sms: int) -> tuple[Action, ...]:
    """Smaller blocks are as many threads: they help only where multiprocessors get none."""
    spread = Action(
        "Spread the work over more threads: a warp for what one thread does now.",
        "row_to_lanes",
        _GRID,
        "higher",
        (2.0, 32.0),
    )
    split = Action(
        "Share a long loop between rows of threads and several blocks, and add up their parts.",
        "split_reduction",
    )
    most = min(_MOST, sms / blocks) if blocks else 0.0
    if most < _WORTH_SMALLER:
        return spread, split
    smaller = Action("Launch smaller blocks.", "block_size", _GRID, "higher", (1.1, most))
    return spread, split, smaller
