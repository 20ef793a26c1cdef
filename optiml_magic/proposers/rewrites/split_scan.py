"""Running sums and extremes of few threads, by blocks that share the rounds in their order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from optiml_magic.chips import CHIPS
from optiml_magic.kernels.primitives.accumulating import in_register
from optiml_magic.kernels.primitives.base import Kernel, Refused, where_legal
from optiml_magic.kernels.primitives.branched import branched
from optiml_magic.kernels.primitives.carried import carried
from optiml_magic.kernels.primitives.counted import as_counted
from optiml_magic.kernels.primitives.cutting import cut
from optiml_magic.kernels.primitives.direct import direct, in_full
from optiml_magic.kernels.primitives.effects import is_simple, loops_in
from optiml_magic.kernels.primitives.plain import PLAIN
from optiml_magic.kernels.primitives.scan_parts import scan_in_parts
from optiml_magic.kernels.primitives.shaped import linear
from optiml_magic.kernels.primitives.sizes import rounds, working
from optiml_magic.kernels.primitives.unpeeled import unpeeled
from optiml_magic.model.hypothesis import TIME, Hypothesis
from optiml_magic.proposers.rewrites.kernel_rule import KernelRule, Site
from optiml_magic.source.directives import ScratchDirective

_PARTS = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
_RESIDENT = 2048  # threads of a multiprocessor that is full
_WARP = 32
_EACH = 16  # rounds of a part, at least: ours
_LONG = 128  # rounds from which on a loop is shared: ours


class SplitScan(KernelRule):
    """Cumulated sums down columns, running maxima along time, offsets made of counts."""

    name = "split_scan"
    before = (*PLAIN, linear, in_full, direct, branched, in_register, carried)
    teaches = (
        "Each round went on from what the one before it had left, so a thread made them one after "
        "the other, and there were few threads. But what a part of the rounds adds is known "
        "without those before it: a first launch finds that for all parts at once, and in the "
        "second each part takes in what the parts before it have added, and makes its rounds from "
        "there. Everything is read twice, by a chip that is full."
    )

    def sites(self, kernel: Kernel) -> Iterator[Site | Refused]:
        busy, chip = working(kernel), CHIPS.get(kernel.chip)
        apart = _RESIDENT * chip.sms // max(busy, 1) if busy is not None and chip else _PARTS[-1]
        if apart < 2 * _PARTS[0]:
            return
        axes = kernel.axes()
        for number, loop in enumerate(loops_in(kernel.function.body)):
            length = rounds(kernel, axes[loop]) if loop in axes else 0
            if length is not None and length < _LONG:
                continue
            made = _apply(kernel, number, _PARTS[0])
            if isinstance(made, Refused):
                continue
            most = min(apart, (length or _LONG) // _EACH, _PARTS[-1])
            fit = max((n for n in _PARTS if n <= most), default=_PARTS[0])
            counter = axes[loop].variable
            name = counter.name if counter is not None else "its rounds"
            points = tuple(
                {kernel.fresh("PARTS"): n}
                for n in dict.fromkeys((fit, max(fit // 2, 2), max(fit // 4, 2)))
            )
            kinds = [d.dtype for d in made.program.directives if isinstance(d, ScratchDirective)]
            rounded = any(kind.startswith("<f") for kind in kinds)
            yield Site(
                f"scan {number}", f"blocks share the loop over {name}, each from what is before it",
                partial(_apply, kernel, number, fit), 0.9 if apart >= 8 else 0.5,
                Hypothesis(TIME, "lower", "more loads are on their way", (1.5, 64.0)), points,
                ("the order of additions",) * rounded,
            )  # fmt: skip
            return


def _apply(kernel: Kernel, at: int, parts: int) -> Kernel | Refused:
    """Counted from 0, and in parts: the loop with this number."""
    plain = as_counted(where_legal(unpeeled, kernel, at), at, is_simple)
    if isinstance(plain, Kernel) and (working(plain) or _WARP) < _WARP:
        plain = where_legal(cut, plain, {"x": 1})  # a part has a block, whose threads may share it
    return plain if isinstance(plain, Refused) else scan_in_parts(plain, at, parts, _PARTS)
