"""Launch overhead: a plan of many short launches, which cost more than their work.

Source: CUDA C++ Best Practices Guide, "Concurrent Kernel Execution"; the 20 % are KernelPro's
(arXiv 2606.26453, second-hand).
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import saved
from optiml_magic.findings.followed import across_the_grid
from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_SHARE = 0.20
_METRIC = "plan__launches"
_TOGETHER = (
    "Fuse the kernels: what one writes and the next reads stays in registers.",
    "Do several steps in one launch, block by block.",
)
_RULES = {_TOGETHER[0]: "fuse_elementwise"}
# Where a launch needs what all blocks of the one before did, no block may go on by itself.
_BORDERS = "Take several steps from a tile whose border is as wide as they are many."
_LAST = "Let the last block that ends do what the next launch does."
_APART = (_BORDERS, _LAST)


class LaunchOverhead:
    """Fires once, on the second launch."""

    name = "launch_overhead"
    classes: frozenset[RooflineClass] = frozenset(
        {"launch", "latency", "mixed", "memory", "compute"}
    )
    metrics: tuple[str, ...] = ()

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        number = len(subject.plan.launches)
        share = subject.share("launch")
        if share is None:
            share = min(1.0, number * subject.roofs.launch / subject.measured.seconds)
        if number < 2 or share < _SHARE:
            return
        line = subject.launch_line(1)
        yield Finding(
            tool=self.name,
            severity="critical" if share > 0.5 else "warning",
            cause=f"{number} launches take {100 * share:.0f} % of the time by themselves (line "
            f"{line}).",
            evidence=(
                Evidence("launch_share", 100 * share, 100 * _SHARE, "%", "estimated", line),
            ),
            actions=tuple(
                Action(advice, _RULES.get(advice, ""), _METRIC, factor=(2.0, float(number)))
                for advice in (_APART if across_the_grid(subject) else _TOGETHER)
            ),
            gain=(1.0, saved(share * (1 - 1 / number))),
            reason="a launch that is not made costs nothing, and its data makes no round trip",
        )  # fmt: skip
