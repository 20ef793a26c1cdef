"""What the tools look at: a measurement, and the program, the build and the launches it is of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from optiml_magic.chips import Chip
from optiml_magic.findings.code import Code, codes
from optiml_magic.findings.lines import Lines
from optiml_magic.kernels.read import read
from optiml_magic.kernels.reading import Reading
from optiml_magic.kernels.signature import Parameter, kernels, split_name
from optiml_magic.kernels.unit import Unit, lift_program
from optiml_magic.model.build import Build
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.facts import Facts
from optiml_magic.model.launch import Launch, LaunchPlan
from optiml_magic.model.measurement import Measurement
from optiml_magic.model.roofline import Roofs
from optiml_magic.source.program import Program

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

    ``facts`` are those of its launches; None where it was bound to nothing.
    """

    chip: Chip
    roofs: Roofs
    measured: Measurement
    program: Program
    build: Build
    plan: LaunchPlan
    facts: Facts | None = None

    @property
    def buffers(self) -> Mapping[str, int]:
        """The bytes of each array of the task by name."""
        return self.facts.buffers if self.facts is not None else {}

    def launch_line(self, at: int) -> int:
        """The line of the directive behind that launch of the plan; 0 where nothing is bound."""
        return self.facts.launches[at].line if self.facts is not None else 0

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
        return {p.name: p for k in kernels(self._unit) for p in k.parameters}

    @cached_property
    def readings(self) -> tuple[Reading, ...]:
        """What each kernel of the plan does, once; of all kernels where the plan has none."""
        spelled = {lowered: name for name, lowered in self.build.names.items()}
        launched = dict.fromkeys(launch.kernel for launch in self.plan.launches)
        found = [self._reading(spelled.get(lowered, lowered)) for lowered in launched]
        return tuple(filter(None, found)) or tuple(
            read(self._unit, kernel, tuned=self._tuned) for kernel in self._unit.kernels
        )

    @cached_property
    def lines(self) -> Lines:
        """What stands on each line of the program."""
        return Lines(self._unit, self.readings)

    def _reading(self, spelled: str) -> Reading | None:
        """That of the kernel that a name expression such as ``ns::k<float, 4>`` means."""
        name, arguments = split_name(spelled)
        known = self._unit.kernels
        found = [kernel for kernel in known if kernel.name == name]
        found = found or [k for k in known if k.name.endswith(f"::{name}")]
        return read(self._unit, found[0], arguments, tuned=self._tuned) if found else None

    @cached_property
    def _unit(self) -> Unit:
        return lift_program(self.program)

    @cached_property
    def _tuned(self) -> tuple[str, ...]:
        return tuple(tune.name for tune in self.program.tunes)


def of_name(line: int, name: str) -> str:
    """``line 7 (`a`)``: a place as findings name it."""
    return f"line {line} (`{name}`)" if name else f"line {line}"


def counted(subject: Subject) -> Iterator[tuple[Run, KernelCounters]]:
    """The launches that somebody counted."""
    return ((run, run.counts) for run in subject.runs if run.counts is not None)
