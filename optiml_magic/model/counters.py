"""What a run of a kernel counted: the vocabulary shared by every device that can count.

Names and definitions follow Nsight Compute where it has one; the ncu name stands beside each field.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

Space = Literal["global", "shared", "local"]
Access = Literal["load", "store", "atomic"]


@dataclass(frozen=True)
class MemoryCounters:
    """One memory instruction of the kernel, summed over every warp that executed it.

    ``requests`` counts warp-level executions with at least one active lane. ``sectors`` counts the
    distinct 32-byte sectors each request touched (global and local). ``wavefronts`` counts the
    passes over the 32 banks of 4 bytes that each request needed (shared), so ``wavefronts - ideal``
    are the bank conflicts. ``ideal`` is the least number of sectors (or wavefronts) that the bytes
    asked for need. Atomics that meet at one address are no bank conflict: ``contention`` has them.
    """

    line: int  # 1-based line of the compiled text; 0 when unknown
    space: Space
    access: Access
    width: int  # bytes per lane
    requests: int  # l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum and its siblings
    sectors: int  # l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum and its siblings
    wavefronts: int  # l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum and its siblings
    ideal: int  # in sectors (global, local) or wavefronts (shared)
    lanes: int  # active lanes summed over the requests
    lines: int  # distinct 128-byte lines of each request, the tag lookups of L1 (global, local)
    contention: int = 0  # atomics: turns beyond the first, where lanes of a request meet at a word
    # Whether it combines floats: in shared memory that is a loop of compare and swap.
    swaps: bool = field(default=False, kw_only=True)


@dataclass(frozen=True)
class LineCounters:
    """Executed instructions attributed to one source line."""

    line: int
    warp_instructions: int  # inst_executed
    thread_instructions: int  # thread_inst_executed
    by_class: dict[str, int] = field(default_factory=dict)  # warp instructions
    machine_instructions: int | None = None  # weighted by the cubin's code; None where unknown
    stalls: dict[str, int] = field(default_factory=dict)  # samples by reason, of ncu alone

    @property
    def active_lanes(self) -> float:
        """Mean active lanes per executed warp instruction of the line, 0 to 32."""
        return self.thread_instructions / self.warp_instructions if self.warp_instructions else 0.0


@dataclass(frozen=True)
class BlockCounters:
    """A basic block of the PTX: the lines of its instructions there, and how often warps ran it."""

    ptx_lines: tuple[int, ...]
    warp_executions: int


@dataclass(frozen=True)
class Sampled:
    """The counts are estimates from some blocks of the grid.

    ``error`` is half the 95 % interval over the total, of the quantity that is known worst among
    instructions, sectors and wavefronts. Distinct sectors are extrapolated; it does not cover them.
    """

    blocks: int
    of: int
    error: float

    def __str__(self) -> str:
        return f"sampled {self.blocks} of {self.of} blocks, +-{100 * self.error:.1f} %"


@dataclass(frozen=True)
class KernelCounters:
    """All counts of one kernel launch.

    Those of source ``emulated`` are of the PTX that NVRTC emitted, before ptxas; those of source
    ``ncu`` of the machine code, and what ncu does not count is None or empty there.
    """

    kernel: str  # lowered name
    warp_instructions: int  # smsp__inst_executed.sum
    thread_instructions: int  # smsp__thread_inst_executed.sum
    by_class: dict[
        str, int
    ]  # warp instructions by class: fp32 fp64 fp16 int sfu memory control barrier other
    flops: dict[str, int]  # floating-point operations (an fma counts two) by dtype: f16 f32 f64
    memory: tuple[MemoryCounters, ...]
    lines: tuple[LineCounters, ...]
    barriers: int  # warp-level barrier arrivals
    # Distinct 32-byte global sectors: read (the compulsory DRAM reads), written, and read by each
    # block, summed over the blocks. Emulated only.
    read_sectors_unique: int | None
    write_sectors_unique: int | None
    read_sectors_per_block: int | None
    memory_warps: int | None  # warps that used global or local memory: those with work to do
    sampled: Sampled | None = None  # None: every block of the grid was counted
    blocks: tuple[BlockCounters, ...] = ()
    dram_read_sectors: int | None = None  # modelled, by the L2 of a chip; None: no figure
    source: Literal["emulated", "ncu"] = "emulated"
    # Turns of global atomics, and of those at the 128-byte line where most meet: of a request as
    # many in each sector as lanes meet at one of its words. Lanes that a compiler adds up before
    # are one: of a 32-bit integer, all at one word. Emulated only.
    atomic_turns: int | None = None
    atomic_turns_of_a_line: int | None = None

    @property
    def active_lanes(self) -> float:
        """Mean active lanes per executed warp instruction, 0 to 32."""
        if not self.warp_instructions:
            return 0.0
        return self.thread_instructions / self.warp_instructions
