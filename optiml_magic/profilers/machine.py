"""Executed machine instructions, from the executions of PTX and the code that ptxas made of it.

PTX misleads where ptxas merges loads, unrolls loops again, drops moves or expands a division. A
cubin says which machine instructions each PTX instruction became. Those of one basic block stand
there once, or as often as ptxas copied it when it unrolled a loop. The bytes that its loads and
stores move tell the copies, merged or not; in a block without any, the commonest number of machine
instructions of a PTX instruction, since most become exactly one. An execution of the block executes
its machine instructions, divided by the copies.

A weight, not a measurement: branches that became predication, and code that was moved out of loops,
are off. ``docs/emulator/counters.md`` says by how much.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from optiml_magic.model.build import MachineInstruction
from optiml_magic.model.counters import KernelCounters
from optiml_magic.model.measurement import Metric
from optiml_magic.ptx.sources import SourceLines

_PTX_ACCESS = re.compile(r"\b(?:ld|st)\.(?:global|shared|local)\b(?:.*?\.v(\d))?.*?\.[busf](\d+)\s")
_MACHINE_BITS = re.compile(r"\.[US]?(8|16|64|128)\b")
# ncu's names for executed warp instructions, by the opcode before its first dot.
_OPERATIONS = {
    "LDG": "smsp__inst_executed_op_global_ld.sum",
    "STG": "smsp__inst_executed_op_global_st.sum",
    "LDS": "smsp__inst_executed_op_shared_ld.sum",
    "STS": "smsp__inst_executed_op_shared_st.sum",
    "LDL": "smsp__inst_executed_op_local_ld.sum",
    "STL": "smsp__inst_executed_op_local_st.sum",
}


@dataclass(frozen=True)
class Weighted:
    """Warp instructions of machine code: in all, by opcode before its dot, and by source line."""

    total: int
    by_opcode: dict[str, int]
    by_line: dict[int, int]


def weigh(ptx: str, code: Sequence[MachineInstruction], counters: KernelCounters) -> Weighted:
    """``code`` is the kernel's machine code; ``ptx`` the text that it was made from."""
    made: dict[int, list[str]] = defaultdict(list)
    for instruction in code:
        made[instruction.ptx_line].append(instruction.opcode)
    rows = ptx.splitlines()
    executions: Counter[int] = Counter()
    copies: dict[int, float] = {}
    for block in counters.blocks:
        number = _copies({p: rows[p - 1] for p in block.ptx_lines if p}, made)
        for ptx_line in block.ptx_lines:
            executions[ptx_line] += block.warp_executions
            copies.setdefault(ptx_line, number)
    by_opcode: dict[str, float] = defaultdict(float)
    by_line: dict[int, float] = defaultdict(float)
    lines = source_lines(ptx)
    for ptx_line, opcodes in made.items():
        each = executions[ptx_line] / copies.get(ptx_line, 1)
        by_line[lines.get(ptx_line, 0)] += each * len(opcodes)
        for opcode in opcodes:
            by_opcode[opcode.split(".")[0]] += each
    return Weighted(
        round(sum(by_line.values())),
        {opcode: round(number) for opcode, number in by_opcode.items()},
        {line: round(number) for line, number in by_line.items()},
    )


def _copies(block: Mapping[int, str], made: Mapping[int, list[str]]) -> float:
    """How often the machine code holds a basic block, given as its PTX by line."""
    asked = {p: _ptx_bytes(row) for p, row in block.items()}
    moved = {p: sum(map(_machine_bytes, made.get(p, ()))) for p in asked if asked[p]}
    if sum(moved.values()):
        return sum(moved.values()) / sum(asked.values())
    numbers = sorted(len(made[p]) for p in block if made.get(p))
    return statistics.mode(numbers) if numbers else 1.0


def _ptx_bytes(row: str) -> int:
    found = _PTX_ACCESS.search(row)
    return int(found[1] or 1) * int(found[2]) // 8 if found else 0


def _machine_bytes(opcode: str) -> int:
    if opcode.split(".", maxsplit=1)[0] not in _OPERATIONS:
        return 0
    bits = _MACHINE_BITS.search(opcode)
    return int(bits[1]) // 8 if bits else 4


def with_machine_lines(counters: KernelCounters, found: Weighted) -> KernelCounters:
    """The counters, each source line with its machine instructions."""
    lines = tuple(
        replace(line, machine_instructions=found.by_line.get(line.line, 0))
        for line in counters.lines
    )
    return replace(counters, lines=lines)


def weighted_metrics(found: Sequence[Weighted], note: str) -> list[Metric]:
    """Summed over a plan's launches; source ``sass``. None without weights."""
    if not found:
        return []
    total = sum(weighted.total for weighted in found)
    metrics = [Metric("smsp__inst_executed.sum", total, "inst", "sass", note)]
    for opcode, name in _OPERATIONS.items():
        executed = sum(weighted.by_opcode.get(opcode, 0) for weighted in found)
        if executed:
            metrics.append(Metric(name, executed, "inst", "sass", note))
    return metrics


def source_lines(ptx: str) -> dict[int, int]:
    """The line of the user's text in force at each line of the PTX, both from 1."""
    sources = SourceLines(ptx)
    found = {}
    for number, row in enumerate(ptx.splitlines(), start=1):
        if row.lstrip().startswith(".loc"):
            sources.follow(row.strip())
        found[number] = sources.line
    return found
