"""What ncu counted of each machine instruction, as counters by source line.

The line is that of the user's text, by the way of the PTX: nvdisasm says from which line of it an
instruction was made, and its ``.loc`` directives lead on, out of inlined headers as well. Where
nvdisasm is missing, or shows other code than the report, the report's own line information is used.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from optiml_magic.model.build import MachineInstruction
from optiml_magic.model.counters import KernelCounters, LineCounters, MemoryCounters
from optiml_magic.profilers import opcodes
from optiml_magic.profilers.machine import source_lines
from optiml_magic.profilers.report import Instruction

_BYTES = 16  # of one machine instruction, from compute capability 7.0 on
_STALL = "smsp__pcsamp_warps_issue_stalled_"
_CELL = "cell.cu"  # what the compilers call the user's text


@dataclass(frozen=True)
class _Placed:
    opcode: str
    line: int
    counts: dict[str, float]

    def count(self, name: str) -> int:
        return round(self.counts.get(name, 0.0))

    @property
    def warps(self) -> int:
        return self.count("inst_executed")

    @property
    def threads(self) -> int:
        """Those that no predicate switched off, as the emulated device counts them."""
        name = "thread_inst_executed_true"
        return self.count(name if name in self.counts else "thread_inst_executed")


def counters(
    kernel: str,
    instructions: Sequence[Instruction],
    code: Sequence[MachineInstruction] | None,
    ptx: str,
) -> KernelCounters | None:
    """The counts of one launch; None where ncu gave none by instruction.

    ``code`` is the kernel's machine code by nvdisasm, made from ``ptx``.
    """
    executed = [i for i in instructions if "inst_executed" in i.counts]
    if not executed:
        return None
    placed = list(_placed(executed, code, ptx))
    by_class: Counter[str] = Counter()
    flops: dict[str, float] = defaultdict(float)
    for one in placed:
        by_class[opcodes.kind(one.opcode)] += one.warps
        precision, each = opcodes.flops(one.opcode)
        if precision:
            flops[precision] += each * one.threads
    return KernelCounters(
        kernel=kernel,
        warp_instructions=sum(one.warps for one in placed),
        thread_instructions=sum(one.threads for one in placed),
        by_class=dict(by_class),
        flops={precision: round(number) for precision, number in flops.items()},
        memory=tuple(_memory(placed)),
        lines=tuple(_lines(placed)),
        barriers=sum(one.warps for one in placed if one.opcode.startswith("BAR.")),
        read_sectors_unique=None,
        write_sectors_unique=None,
        read_sectors_per_block=None,
        memory_warps=None,
        source="ncu",
    )


def _placed(
    executed: Sequence[Instruction], code: Sequence[MachineInstruction] | None, ptx: str
) -> Iterator[_Placed]:
    """Each instruction with its opcode and its line."""
    ours = _is_same(executed, code)
    lines = source_lines(ptx) if ours else {}
    start = executed[0].address
    for one in executed:
        at = (one.address - start) // _BYTES
        line, opcode = 0, opcodes.opcode_of(one.sass)
        if ours and code is not None and at < len(code):
            line, opcode = lines.get(code[at].ptx_line, 0), opcode or code[at].opcode
        if not line and one.file.endswith(_CELL):  # behind a kernel's code, or no code of ours
            line = one.line
        yield _Placed(opcode, line, one.counts)


def _is_same(executed: Sequence[Instruction], code: Sequence[MachineInstruction] | None) -> bool:
    """Whether the report shows the code that nvdisasm did; the first instruction always runs."""
    if not code or (executed[-1].address - executed[0].address) % _BYTES:
        return False
    shown = [(i.sass, (i.address - executed[0].address) // _BYTES) for i in executed]
    return all(code[at].opcode in text for text, at in shown if text and at < len(code))


def _memory(placed: Iterable[_Placed]) -> Iterator[MemoryCounters]:
    for one in placed:
        found = opcodes.access(one.opcode)
        if found is None or not one.warps:
            continue
        sectors, ideal, wavefronts = 0, 0, 0
        if found.space == "global":
            sectors = one.count("memory_l2_theoretical_sectors_global")
            ideal = one.count("memory_l2_theoretical_sectors_global_ideal")
        elif found.space == "local":
            sectors = ideal = one.count("memory_l2_theoretical_sectors_local")
        else:
            wavefronts = one.count("memory_l1_wavefronts_shared")
            ideal = one.count("memory_l1_wavefronts_shared_ideal")
        yield MemoryCounters(
            line=one.line,
            space=found.space,
            access=found.access,
            width=found.width,
            requests=one.warps,
            sectors=sectors,
            wavefronts=wavefronts,
            ideal=ideal,
            lanes=one.threads,
            lines=one.count("memory_l1_tag_requests_global"),
        )


def _lines(placed: Iterable[_Placed]) -> Iterator[LineCounters]:
    groups: dict[int, list[_Placed]] = defaultdict(list)
    for one in placed:
        groups[one.line].append(one)
    for line, group in sorted(groups.items()):
        by_class: Counter[str] = Counter()
        stalls: Counter[str] = Counter()
        for one in group:
            by_class[opcodes.kind(one.opcode)] += one.warps
            for name in one.counts:
                if name.startswith(_STALL) and one.count(name):
                    stalls[name.removeprefix(_STALL)] += one.count(name)
        warps = sum(one.warps for one in group)
        yield LineCounters(
            line=line,
            warp_instructions=warps,
            thread_instructions=sum(one.threads for one in group),
            by_class=dict(by_class),
            machine_instructions=warps,
            stalls=dict(stalls),
        )
