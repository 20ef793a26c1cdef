"""Device memory at its roof: only fewer bytes make this kernel faster.

The roof is what a copy reaches on this very card, where it was measured; of an estimate, what the
time model lets a kernel reach. Source: Williams et al. 2009 (roofline); KernelPro (arXiv
2606.26453, second-hand) asks for 80 % of the published peak, which is about 90 % of a copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line
from optiml_magic.findings.subject import DRAM_BYTES, Subject, counted, of_name
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_SATURATED = 0.70  # of the time, at the speed of a copy
_WASTED = 1.2  # sectors over ideal from which smaller data is not all that helps


class DramSaturated:
    """Fires once, on the line with most of the traffic."""

    name = "dram_saturated"
    classes: frozenset[RooflineClass] = frozenset({"memory", "mixed"})
    metrics: tuple[str, ...] = (DRAM_BYTES,)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        share = subject.share("dram")
        estimated = subject.counted_by == "emulated"
        if share is None or share < _SATURATED:
            return
        moved, least = subject.measured.get(DRAM_BYTES), sum(subject.buffers.values())
        spare = moved / least if moved and least else 1.0
        most = max(1.0, spare)
        line, where, wasted = _busiest(subject)
        rule = "fuse_map_reduce" if len(subject.plan.launches) > 1 else "read_once"
        yield Finding(
            tool=self.name,
            severity="warning" if spare > 1.2 else "note",
            cause=f"Device memory is busy {100 * share:.0f} % of what it can do{where}; "
            + (
                f"the kernel moves {spare:.1f} times its arrays."
                if spare > 1.2
                else "the kernel moves its arrays about once, "
                + (
                    "but much of what it moves was not asked for."
                    if wasted
                    else "so only smaller data would help."
                )
            ),
            evidence=(
                Evidence(
                    "dram_share",
                    100 * share,
                    100 * _SATURATED,
                    "%",
                    "estimated" if estimated else "ncu",
                    line,
                ),
            ),
            actions=(
                Action(
                    "Read each element once: fuse passes, and keep what is used again on the chip.",
                    metric=DRAM_BYTES,
                    factor=(1.1, max(1.1, most)),
                    rewrite=rule if spare > 1.2 else "",
                ),
                Action("Store the data in a narrower type, where the task allows it.",
                       metric=DRAM_BYTES, factor=(1.1, 2.0)),
            ),
            gain=(1.0, most),
            reason="the time follows the bytes, and the arrays have to be moved once",
        )  # fmt: skip


def _busiest(subject: Subject) -> tuple[int, str, bool]:
    """The line with most sectors, in words, and whether its sectors hold more than it asked for."""
    sites = [m for _, counts in counted(subject) for m in by_line(counts.memory, "global")]
    if not sites:
        return 0, "", False
    most = max(sites, key=lambda m: m.sectors)
    name = subject.lines.array(most.line, most.access, "global")
    where = f", most of it for the {most.access} on {of_name(most.line, name)}"
    return most.line, where, most.sectors > _WASTED * most.ideal
