"""What the tools look at: a measurement, and the program, the build and the launches it is of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from optiml_magic.chips import Chip
from optiml_magic.findings.code import Code, codes
from optiml_magic.kernels.signature import Parameter, kernels
from optiml_magic.kernels.unit import lift_program
from optiml_magic.model.build import Build
from optiml_magic.model.counters import Access, KernelCounters
from optiml_magic.model.launch import Launch, LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.roofline import Roofs
from optiml_magic.source.program import Program

_ASSIGNED = re.compile(r"(?<![=!<>])(?:<<|>>|[+\-*/%&|^])?=(?!=)")
_INDEXED = re.compile(r"\b([A-Za-z_]\w*)\s*\[")
_FOR = re.compile(r"\bfor\s*\([^;]*;[^;]*;[^;{)]*\)")
_TARGET = re.compile(r"([A-Za-z_]\w*)(?:\s*\[[^\]]*\])*\s*$")

DRAM_BYTES = "dram__bytes.sum"
# What ncu says of the resources that the time model of the emulated device has terms for.
UTILISATION = {
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "lsu": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "issue": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "fp64": "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active",
    "sfu": "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active",
}


@dataclass(frozen=True)
class Run:
    """One launch of the plan: its counts, where somebody counted, and its PTX, where it reads."""

    launch: Launch
    counts: KernelCounters | None
    code: Code | None

    @property
    def per_line(self) -> dict[int, int]:
        """Executed warp instructions by source line; of the machine code where that is known."""
        lines = self.counts.lines if self.counts else ()
        return {
            x.line: x.warp_instructions
            if x.machine_instructions is None
            else x.machine_instructions
            for x in lines
        }


@dataclass(frozen=True)
class Subject:
    """One program on one chip, as measured, under the roofs that this chip has.

    ``buffers`` has the bytes of each array by name.
    """

    chip: Chip
    roofs: Roofs
    measured: Measurement
    program: Program
    build: Build
    plan: LaunchPlan
    buffers: Mapping[str, int] = field(default_factory=dict)

    @property
    def counted_by(self) -> str:
        """The source of the counts by line."""
        return next((k.source for k in self.measured.kernels), "ncu")

    @cached_property
    def runs(self) -> tuple[Run, ...]:
        """The launches in their order, with what is known of each."""
        found = codes(self.build.ptx)
        counted = self.measured.kernels
        whole = len(counted) == len(self.plan.launches)
        return tuple(
            Run(launch, counted[at] if whole else None, found.get(launch.kernel))
            for at, launch in enumerate(self.plan.launches)
        )

    def share(self, resource: str) -> float | None:
        """The part of the time that this resource alone would need, 0 to 1.

        Of an estimate that is the term of the time model, whose roofs are those that a kernel can
        reach; of a card what ncu says of the peak, and of its memory the bytes against the roof
        that was measured on it.
        """
        for bound in self.measured.bounds:
            if bound.resource == resource:
                return min(1.0, bound.seconds / self.measured.seconds)
        moved = self.measured.get(DRAM_BYTES) if resource == "dram" else None
        if moved is not None:
            return moved / self.measured.seconds / self.roofs.memory
        percent = self.measured.get(UTILISATION[resource]) if resource in UTILISATION else None
        return None if percent is None else percent / 100

    def part(self, *resources: str) -> float:
        """The largest share of these resources in an estimate; all of the time on a card.

        There a unit that is not busy may still be what everybody waits for.
        """
        terms = [b.seconds for b in self.measured.bounds if b.resource in resources]
        return min(1.0, max(terms) / self.measured.seconds) if terms else 1.0

    @property
    def warps_per_scheduler(self) -> float | None:
        """Resident warps of one of the four schedulers of a multiprocessor."""
        percent = self.measured.get("sm__maximum_warps_per_active_cycle_pct")
        return None if percent is None else percent / 100 * self.chip.warps_per_sm / 4

    @property
    def read_bytes(self) -> int:
        """The bytes of all arrays that some kernel reads, or may read."""
        known = self.parameters
        return sum(n for name, n in self.buffers.items() if name not in known or known[name].reads)

    @cached_property
    def parameters(self) -> dict[str, Parameter]:
        """The parameters of all kernels by name."""
        return {p.name: p for k in kernels(lift_program(self.program)) for p in k.parameters}

    def text(self, line: int) -> str:
        """A line of the program without its comments; empty where there is none."""
        return self._lines[line - 1] if 0 < line <= len(self._lines) else ""

    def array(self, line: int, access: Access) -> str:
        """The array that a line loads from or stores to; empty where that is not certain."""
        found = self.arrays(line, access)
        return found[0] if len(found) == 1 else ""

    def arrays(self, line: int, access: Access) -> tuple[str, ...]:
        """The arrays that a line may load from or store to, each once."""
        text = self.text(line)
        sign = _ASSIGNED.search(text)
        names = list(_INDEXED.finditer(text))
        at = _target_start(text[: sign.start()]) if sign else -1
        target = [m for m in names if m.start() == at]
        stored = [m[1] for m in target]
        loaded = [m[1] for m in names if m not in target]
        if sign and sign[0] != "=" and access == "load":
            loaded += stored
        return tuple(dict.fromkeys(stored if access == "store" else loaded))

    def assigned(self, line: int) -> str:
        """The variable that a line assigns to; empty where there is none, or more than one."""
        text = _FOR.sub("", self.text(line))
        signs = list(_ASSIGNED.finditer(text))
        target = _TARGET.search(text[: signs[0].start()]) if len(signs) == 1 else None
        return target[1] if target else ""

    def line_of(self, pattern: str) -> int:
        """The first line whose code matches, 0 where none does."""
        found = (at for at, text in enumerate(self._lines, 1) if re.search(pattern, text))
        return next(found, 0)

    @cached_property
    def _lines(self) -> list[str]:
        return self.program.lexed.code.split("\n")


def _target_start(text: str) -> int:
    """Where the name begins whose element stands at the end of a text; -1 where none does."""
    text = text.rstrip()
    while text.endswith("]"):
        depth, at = 0, len(text)
        while at and (depth or at == len(text)):
            at -= 1
            depth += {"]": 1, "[": -1}.get(text[at], 0)
        text = text[:at].rstrip()
        if not text.endswith("]"):
            name = re.search(r"[A-Za-z_]\w*$", text)
            return name.start() if name else -1
    return -1


def of_name(line: int, name: str) -> str:
    """``line 7 (`a`)``: a place as findings name it."""
    return f"line {line} (`{name}`)" if name else f"line {line}"


def counted(subject: Subject) -> Iterator[tuple[Run, KernelCounters]]:
    """The launches that somebody counted."""
    return ((run, run.counts) for run in subject.runs if run.counts is not None)
