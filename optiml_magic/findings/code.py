"""The PTX of a kernel as the tools read it: blocks, loops, and what waits for what.

Latencies are in cycles, rounded from public micro-benchmarks of recent chips; they are the same in
every chip as far as a chain of dependent instructions is to be told from an independent one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from operator import itemgetter
from typing import NamedTuple

from optiml_magic.ptx.cfg import Block, Graph, build
from optiml_magic.ptx.faults import UnsupportedPtx
from optiml_magic.ptx.loops import innermost
from optiml_magic.ptx.nouns import Instruction, bits
from optiml_magic.ptx.parser import parse
from optiml_magic.ptx.traits import defined, kind, used

_LATENCY = {"fp32": 4, "int": 5, "fp16": 5, "fp64": 8, "sfu": 20, "other": 4}
_LOADED = {"shared": 28, "global": 500, "local": 40, "const": 30, "param": 0}
_FREE = frozenset({"mov", "cvta"})  # ptxas renames registers instead


@dataclass(frozen=True)
class Chain:
    """What a turn of a loop hands to the next: the cycles it takes, and its slowest instruction."""

    cycles: int
    slowest: Instruction


class _Step(NamedTuple):
    """An instruction of a loop, the registers that it reads and makes, and its latency."""

    instruction: Instruction
    reads: Sequence[str]
    makes: Sequence[str]
    cycles: int


@dataclass(frozen=True)
class Loop:
    """An innermost loop: its blocks in the order of the text."""

    blocks: tuple[Block, ...]

    @cached_property
    def instructions(self) -> tuple[Instruction, ...]:
        return tuple(i for block in self.blocks for i in block.every)

    @property
    def issued(self) -> int:
        """Instructions that a turn has to issue, about: moves become names of registers."""
        return sum(1 for i in self.instructions if i.base not in _FREE)

    @cached_property
    def _steps(self) -> tuple[_Step, ...]:
        return tuple(
            _Step(i, [r.name for r in used(i)], [r.name for r in defined(i)], latency(i))
            for i in self.instructions
        )

    @cached_property
    def chain(self) -> Chain | None:
        """The longest chain from a register of one turn to the same register of the next."""
        made = {name for step in self._steps for name in step.makes}
        carried = sorted(self._needed & made)
        found = [chain for name in carried if (chain := self._around(name)) is not None]
        return max(found, key=lambda c: c.cycles, default=None)

    @cached_property
    def _needed(self) -> frozenset[str]:
        """Registers that are read before the turn writes them."""
        made: set[str] = set()
        needed: set[str] = set()
        for step in self._steps:
            needed |= set(step.reads) - made
            made |= set(step.makes)
        return frozenset(needed)

    def _around(self, name: str) -> Chain | None:
        ready: dict[str, tuple[int, _Step | None]] = {name: (0, None)}
        for step in self._steps:
            waits = [ready[register] for register in step.reads if register in ready]
            if not waits:
                for register in step.makes:
                    ready.pop(register, None)
                continue
            cycles, slowest = max(waits, key=itemgetter(0))
            if slowest is None or step.cycles >= slowest.cycles:
                slowest = step
            for register in step.makes:
                ready[register] = cycles + step.cycles, slowest
        cycles, slowest = ready.get(name, (0, None))
        return Chain(cycles, slowest.instruction) if slowest is not None and cycles else None


@dataclass(frozen=True)
class Code:
    """One kernel."""

    graph: Graph

    @property
    def instructions(self) -> Iterator[Instruction]:
        return (i for block in self.graph.blocks for i in block.every)

    @cached_property
    def loops(self) -> tuple[Loop, ...]:
        """The innermost loops."""
        return tuple(Loop(blocks) for blocks in innermost(self.graph))

    @cached_property
    def pressure(self) -> tuple[int, int]:
        """The source line where most values are alive at once, and how many 32-bit ones."""
        widths = {
            r.name: bits(r.type) // 32 for i in self.instructions for r in (*used(i), *defined(i))
        }
        worst = (0, 0)
        for block in self.graph.blocks:
            alive = set(block.live_out)
            number = sum(widths.get(name, 0) for name in alive)
            for instruction in reversed(block.every):
                made = {r.name for r in defined(instruction)} & alive
                alive -= made
                begun = {r.name for r in used(instruction)} - alive
                alive |= begun
                number += sum(widths[name] for name in begun) - sum(widths[name] for name in made)
                worst = max(worst, (number, instruction.line))
        return worst[1], worst[0]


def latency(instruction: Instruction) -> int:
    """Cycles until the result can be used."""
    base = instruction.base
    if base in _FREE:
        return 0
    if base in ("ld", "ldu", "atom"):
        return next((_LOADED[p] for p in instruction.parts if p in _LOADED), _LOADED["global"])
    if base in ("shfl", "vote", "match", "redux"):
        return 25
    if base in ("div", "rem") and kind(instruction) == "int":
        return 120
    if base in ("div", "sqrt") and "rn" in instruction.parts:
        return 60 if kind(instruction) == "sfu" else 150
    return _LATENCY.get(kind(instruction), 4)


@lru_cache(maxsize=64)
def codes(ptx: str) -> Mapping[str, Code]:
    """The kernels of a PTX text by lowered name; none where it holds what cannot be read here."""
    try:
        functions = parse(ptx).functions
        return {name: Code(build(f)) for name, f in functions.items() if f.entry}
    except (UnsupportedPtx, ValueError, KeyError):
        return {}
