"""Uncached constant data: all lanes of a warp load the same word of a small, read-only array.

The constant cache serves such a load in one pass and without a slot of the load-store unit. Source:
CUDA C++ Best Practices Guide, "Constant Memory".
"""

from __future__ import annotations

from collections.abc import Iterator

from optiml_magic.findings.base import by_line, saved
from optiml_magic.findings.subject import Subject, counted, of_name
from optiml_magic.model.counters import MemoryCounters
from optiml_magic.model.finding import Action, Evidence, Finding, RooflineClass

_SMALL = 64 << 10  # bytes of constant memory
_PART = 0.25  # of the global loads
_BUSY = 0.05  # of the executed instructions
_METRIC = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"


class ConstantData:
    """Fires per line with such loads."""

    name = "constant_data"
    classes: frozenset[RooflineClass] = frozenset({"compute", "latency", "mixed", "memory"})
    metrics: tuple[str, ...] = (_METRIC,)

    def diagnose(self, subject: Subject) -> Iterator[Finding]:
        for _, counts in counted(subject):
            loads = [m for m in by_line(counts.memory, "global") if m.access == "load"]
            total = sum(m.requests for m in loads)
            for load in by_line(filter(_uniform, counts.memory), "global"):
                often = load.requests >= max(_PART * total, _BUSY * counts.warp_instructions)
                names = subject.lines.arrays(load.line, "load", "global")
                small = [name for name in names if _small(subject, name)]
                if often and len(small) == 1:
                    name = small[0]
                    yield _finding(subject, load, name, load.requests / counts.warp_instructions)


def _uniform(load: MemoryCounters) -> bool:
    """Each request touches one sector, though its lanes together ask for several times that."""
    if load.access != "load" or load.lanes < 24 * load.requests:
        return False
    return load.sectors == load.requests and load.lanes * load.width > 64 * load.requests


def _small(subject: Subject, name: str) -> bool:
    parameter = subject.parameters.get(name)
    if parameter is None or not parameter.pointer or parameter.writes:
        return False
    return 0 < subject.buffers.get(name, 0) <= _SMALL


def _finding(subject: Subject, load: MemoryCounters, name: str, share: float) -> Finding:
    size = subject.buffers[name]
    return Finding(
        tool=ConstantData.name,
        severity="note" if share < 0.2 else "warning",
        cause=f"All lanes load the same word on {of_name(load.line, name)}, from an array of "
        f"{size} bytes that nobody writes: it could lie in constant memory.",
        evidence=(
            Evidence("uniform_loads", 100 * share, 100 * _BUSY, "%", subject.counted_by,
                     load.line),
        ),
        actions=(
            Action("Load it once into shared memory or registers.",
                   metric=_METRIC, factor=(1.1, 16.0)),
            Action(f"Declare `{name}` as __constant__ memory in the input kernel; the task binds "
                   "it by its name.", metric=_METRIC, factor=(1.1, 16.0)),
        ),
        gain=(1.0, saved(min(0.5, 2 * share))),
        reason="a constant is an operand of the arithmetic, not an instruction of its own",
    )  # fmt: skip
