"""Partial warps: a block size that is no multiple of 32 leaves lanes empty in every block.

Source: CUDA C++ Best Practices Guide, "Thread and Block Heuristics".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import saved
from optiml_magic.findings.subject import Subject
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_IDLE = 0.10  # of the lanes of a block
_MANY = 132  # blocks: a grid of a few is not about throughput


class PartialWarps:
    """Fires for each launch, on its directive."""

    name = "partial_warps"
    classes: frozenset[RooflineClass] = frozenset(
        {"memory", "compute", "latency", "mixed", "launch"}
    )
    metrics: tuple[str, ...] = ()

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        seen = set()
        for at, run in enumerate(subject.runs):
            threads, kernel = run.launch.block_threads, run.launch.kernel
            idle = 1 - threads / (32 * -(-threads // 32))
            if idle < _IDLE or run.launch.blocks < _MANY or kernel in seen:
                continue
            seen.add(kernel)
            line = subject.launch_line(at)
            yield Finding(
                tool=self.name,
                severity="warning" if idle > 0.3 else "note",
                cause=f"Blocks of {threads} threads leave {100 * idle:.0f} % of their lanes empty "
                f"(launch on line {line}).",
                evidence=(
                    Evidence("launch__block_size", threads, 32 * -(-threads // 32), "thread",
                             "compiler", line),
                ),
                actions=(
                    Action("Use a multiple of 32 threads.", "block_size",
                           "smsp__thread_inst_executed_per_inst_executed.ratio", "higher",
                           (1.05, 1 / (1 - idle))),
                ),
                gain=(1.0, saved(idle)),
                reason="a warp's instruction costs the same for one lane as for 32",
            )  # fmt: skip
