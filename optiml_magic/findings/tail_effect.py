"""The tail: a last wave of blocks that fills only a part of the chip.

Source: CUDA C++ Best Practices Guide, "Thread and Block Heuristics"; NVIDIA's technical blog, "CUDA
Pro Tip: Minimize the Tail Effect".
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass
from optiml_magic.model.hypothesis import TIME

_EFFICIENCY = 0.75  # waves over whole waves
_WORK = 8.0  # times an empty launch: below it there is no throughput to speak of
_TRAFFIC = 0.6  # of the time that memory may take: a part of the chip can keep it busy
_LIMITS = ("warps", "blocks", "registers", "shared")
_METRIC = "launch__waves_per_multiprocessor"


class TailEffect:
    """Fires once for the kernel."""

    name = "tail_effect"
    classes: frozenset[RooflineClass] = frozenset({"memory", "compute", "latency", "mixed"})
    metrics: tuple[str, ...] = ()

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        waves = subject.measured.get(_METRIC)
        if waves is None or waves <= 1.0 or subject.measured.seconds < _WORK * subject.roofs.launch:
            return
        efficiency = waves / math.ceil(waves)
        if efficiency >= _EFFICIENCY or (subject.share("dram") or 0.0) > _TRAFFIC:
            return
        line, blocks = _launch(subject, waves)
        if not blocks:
            return
        fit = round(blocks / waves)
        yield Finding(
            tool=self.name,
            severity="warning",
            cause=f"Of {blocks} blocks {fit} fit on the chip at once, so they take "
            f"{math.ceil(waves)} waves, and the last is nearly empty (launch on line {line}).",
            evidence=(
                Evidence("wave_efficiency", 100 * efficiency, 100 * _EFFICIENCY, "%", "estimated",
                         line),
            ),
            actions=(
                Action("Launch as many blocks as fit, and let each stride over the work.",
                       metric=_METRIC, factor=(1.0, waves)),
                Action("Try blocks of another size, of which whole waves may fit.", "block_size",
                       TIME, factor=(1.0, 1 / efficiency)),
            ),
            gain=(1.0, 1 / efficiency),
            reason="a wave takes as long as its blocks, however few they are",
        )  # fmt: skip


def _launch(subject: Subject, waves: float) -> tuple[int, int]:
    """The line and the blocks of the launch that has so many waves."""
    measured = subject.measured
    limits = [measured.get(f"launch__occupancy_limit_{name}") for name in _LIMITS]
    fit = min((x for x in limits if x is not None), default=0.0) * subject.chip.sms
    for at, run in enumerate(subject.runs):
        if run.launch.blocks == round(waves * fit):
            return subject.launch_line(at), run.launch.blocks
    return 0, 0
