"""A kernel's text with what each line became: PTX, machine code, and what was counted there."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from optiml_magic.model.build import Build, MachineInstruction
from optiml_magic.model.counters import KernelCounters, MemoryCounters
from optiml_magic.model.finding import Finding
from optiml_magic.profilers.machine import source_lines
from optiml_magic.reports.lines import accesses

Code = Mapping[str, Sequence[MachineInstruction]]
_ENTRY = re.compile(
    r"^\s*(?:\.(?:visible|weak|extern)\s+)*\.(?:entry|func)\s+(?:\([^)]*\)\s*)?(\S+?)\("
)
_INSTRUCTION = re.compile(r"\s*\{?\s*(?:@!?%\w+\s+)?[a-z]\w*(?:[.:]\w+)*(?:\s|;)")


@dataclass(frozen=True)
class Instruction:
    """One PTX instruction and the machine code that ptxas made of it.

    ``text`` is empty where machine code stands for no single PTX instruction, as the head of a
    function does. ``executed`` counts warps; None where nothing was counted.
    """

    kernel: str  # lowered name
    text: str
    machine: tuple[str, ...]
    executed: int | None = None


@dataclass(frozen=True)
class LineCounts:
    """What one line did, summed over the launches of one run."""

    instructions: int  # of warps: PTX from the emulated device, machine code from ncu
    machine: int | None  # of warps: weighted by the cubin's code; None where unknown
    lanes: float  # active, of 32
    share: float  # of all executed instructions, 0 to 1
    requests: int  # to global and local memory
    sectors: int
    ideal_sectors: int
    sector_share: float  # of all sectors, 0 to 1
    conflicts: int  # wavefronts of shared memory beyond the least
    conflict_share: float  # of all conflicts, 0 to 1
    shared_requests: int
    accesses: tuple[str, ...]  # each in words
    stalls: Mapping[str, int]  # samples by reason, the commonest first; of ncu alone
    stall_share: float  # of all samples, 0 to 1


@dataclass(frozen=True)
class AnnotatedLine:
    """One line of the text. No instructions: it became none of its own."""

    number: int
    source: str
    instructions: tuple[Instruction, ...]
    counts: LineCounts | None = None
    findings: tuple[Finding, ...] = ()  # those about this line

    @property
    def heat(self) -> float:
        """The larger of its shares of instructions and of sectors, 0 to 1."""
        return max(self.counts.share, self.counts.sector_share) if self.counts else 0.0


@dataclass(frozen=True)
class Annotation:
    """The whole text. ``facts`` say where everything comes from, and what is missing and why."""

    name: str
    lines: tuple[AnnotatedLine, ...]
    facts: tuple[tuple[str, str], ...]
    kernels: Mapping[str, str]  # lowered name to the one in the text
    findings: tuple[Finding, ...] = ()  # those about the kernel as a whole

    @property
    def counted(self) -> bool:
        """Whether anything was executed and counted by line."""
        return any(line.counts for line in self.lines)

    @property
    def weighted(self) -> bool:
        """Whether executions of machine code are known as well as those of PTX."""
        return any(line.counts and line.counts.machine is not None for line in self.lines)

    @property
    def sampled(self) -> bool:
        """Whether it is known why warps waited."""
        return any(line.counts and line.counts.stalls for line in self.lines)


def annotated(
    name: str,
    text: str,
    build: Build,
    code: Code | None,
    counters: Sequence[KernelCounters],
    findings: Sequence[Finding],
    facts: Iterable[tuple[str, str]],
) -> Annotation:
    """Join a text with its build, its disassembly (None: there is none), counts and findings."""
    by_line: dict[int, list[Instruction]] = defaultdict(list)
    for line, instruction in _instructions(build.ptx, code or {}, counters):
        by_line[line].append(instruction)
    counts = _counts(counters)
    rows = text.removesuffix("\n").split("\n")  # as a compiler counts lines
    return Annotation(
        name=name,
        lines=tuple(
            AnnotatedLine(
                number,
                row.rstrip("\r"),
                tuple(by_line[number]) if number in by_line else (),
                counts.get(number),
                tuple(finding for finding in findings if finding.line == number),
            )
            for number, row in enumerate(rows, start=1)  # a directive can name lines beyond
        ),
        facts=tuple(facts),
        kernels={lowered: given for given, lowered in build.names.items()},
        findings=tuple(finding for finding in findings if not finding.line),
    )


@dataclass
class _Row:
    """A statement of the PTX and the machine code that stands at its lines."""

    kernel: str
    text: str
    ptx_line: int
    machine: list[str]


def _instructions(
    ptx: str, code: Code, counters: Sequence[KernelCounters]
) -> Iterator[tuple[int, Instruction]]:
    """Every instruction with its source line, in the order of the PTX."""
    lines, rows = source_lines(ptx), _rows(ptx)
    executed, ran = _executions(counters), {k.kernel for k in counters if k.blocks}
    made: dict[int, list[str]] = defaultdict(list)
    for instruction in (i for kernel in code.values() for i in kernel):
        made[instruction.ptx_line].append(instruction.text)
    for at, row in enumerate(rows):
        row.machine += made.pop(row.ptx_line, [])
        if not row.text and not row.machine:
            continue
        line = lines[row.ptx_line]
        if not row.text:  # the head of a function: where its first instruction is
            behind = (r for r in rows[at:] if r.kernel == row.kernel and r.text)
            line = next((lines[r.ptx_line] for r in behind if lines[r.ptx_line]), line)
        runs = executed.get(row.ptx_line, 0) if row.text and row.kernel in ran else None
        yield line, Instruction(row.kernel, row.text, tuple(row.machine), runs)


def _rows(ptx: str) -> list[_Row]:
    """Statements that run over several lines joined; other lines of a function without a text."""
    found: list[_Row] = []
    kernel, is_open = "", False
    for number, line in enumerate(ptx.splitlines(), start=1):
        entry = _ENTRY.match(line)
        text = " ".join(line.split("//")[0].split())
        if entry:
            kernel, is_open = entry[1], False
        elif is_open:
            found[-1].text += f" {text}"
        elif kernel and _INSTRUCTION.match(line):
            found.append(_Row(kernel, text, number, []))
            is_open = True
        if is_open and text.endswith(";"):
            found[-1].text, is_open = found[-1].text.rstrip(";"), False
        elif kernel and not is_open and not (found and found[-1].ptx_line == number):
            found.append(_Row(kernel, "", number, []))
    return found


def _executions(counters: Sequence[KernelCounters]) -> dict[int, int]:
    found: Counter[int] = Counter()
    for block in (b for kernel in counters for b in kernel.blocks):
        for ptx_line in block.ptx_lines:
            found[ptx_line] += block.warp_executions
    return dict(found)


def _counts(counters: Sequence[KernelCounters]) -> dict[int, LineCounts]:
    memory: dict[int, list[MemoryCounters]] = defaultdict(list)
    for site in (m for kernel in counters for m in kernel.memory):
        memory[site.line].append(site)
    lines = [line for kernel in counters for line in kernel.lines]
    known = any(line.machine_instructions is not None for line in lines)
    warps: Counter[int] = Counter()
    threads: Counter[int] = Counter()
    machine: Counter[int] = Counter()
    stalls: dict[int, Counter[str]] = defaultdict(Counter)
    for line in lines:
        stalls[line.line].update(line.stalls)
        warps[line.line] += line.warp_instructions
        threads[line.line] += line.thread_instructions
        machine[line.line] += line.machine_instructions or 0
    weights = machine if known else warps
    whole = sum(weights.values()) or 1
    samples = sum(reasons.total() for reasons in stalls.values()) or 1
    conflicts = sum(_extra(sites) for sites in memory.values())
    sectors = sum(
        m.sectors for m in _beyond_sm(site for sites in memory.values() for site in sites)
    )
    return {
        number: LineCounts(
            instructions=warps[number],
            machine=machine[number] if known else None,
            lanes=threads[number] / warps[number],
            share=weights[number] / whole,
            sector_share=sum(m.sectors for m in _beyond_sm(memory[number])) / (sectors or 1),
            conflicts=_extra(memory[number]),
            conflict_share=_extra(memory[number]) / (conflicts or 1),
            accesses=tuple(accesses(memory[number])),
            stalls=dict(stalls[number].most_common()),
            stall_share=stalls[number].total() / samples,
            **_memory(memory[number]),
        )
        for number in sorted(warps)
        if number and warps[number]
    }


def _memory(sites: Sequence[MemoryCounters]) -> dict[str, int]:
    beyond = _beyond_sm(sites)
    return {
        "requests": sum(m.requests for m in beyond),
        "sectors": sum(m.sectors for m in beyond),
        "ideal_sectors": sum(m.ideal for m in beyond),
        "shared_requests": sum(m.requests for m in sites if m.space == "shared"),
    }


def _extra(sites: Iterable[MemoryCounters]) -> int:
    """Wavefronts of shared memory beyond the least."""
    return sum(m.wavefronts - m.ideal for m in sites if m.space == "shared")


def _beyond_sm(sites: Iterable[MemoryCounters]) -> list[MemoryCounters]:
    return [m for m in sites if m.space != "shared"]
