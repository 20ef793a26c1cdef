"""A time model: counted work over published rates, with the slowest resource deciding.

Each term is the time that one resource alone would need; the estimate is the launch overhead plus
the longest term plus a share of the others, since overlap is never perfect. The terms follow the
roofline (Williams et al. 2009) for throughput and Little's law (Volkov 2016) for latency. Every
constant here is ours. Simple analytical models are independently reported to err by 24 to 136 % in
absolute time; a *ratio* of two kernels on one chip errs less, and ``RATIO_ERROR`` states what we
claim for it.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.chips import Chip
from optiml_magic.model.counters import KernelCounters, MemoryCounters
from optiml_magic.model.launch import Launch
from optiml_magic.model.measurement import Bound
from optiml_magic.profilers.occupancy import Occupancy

RATIO_ERROR = 1.3
"""A ratio of two estimates is claimed to lie within this factor of the measured one."""

_LAUNCH_SECONDS = 2.5e-6
_OVERLAP_LEAK = 0.15  # share of every other term that is not hidden behind the longest
_SCHEDULERS = 4  # warp instructions issued per clock and multiprocessor
_SECTORS_PER_CYCLE = 4  # 128 bytes a clock from L1
_DRAM_CYCLES, _L2_CYCLES, _L1_CYCLES = 600.0, 270.0, 35.0  # latencies
_ISSUE_CYCLES = 4.5  # between dependent instructions of one warp
_MEMORY_PARALLELISM = 3.0  # loads in flight of one warp
_BARRIER_CYCLES = 30.0


@dataclass(frozen=True)
class Estimate:
    """Seconds of one launch, the terms it came from, and the DRAM traffic it assumed."""

    seconds: float
    bounds: tuple[Bound, ...]  # longest first
    dram_bytes: float


def estimate(chip: Chip, launch: Launch, counters: KernelCounters, fit: Occupancy) -> Estimate:
    """The estimated duration of one launch on ``chip``."""
    traffic = _traffic(chip, counters)
    cycles = _throughput_cycles(chip, counters)
    active = min(1.0, launch.blocks / chip.sms)  # multiprocessors that get a block at all
    terms = {name: value / (chip.sms * active * chip.clock) for name, value in cycles.items()}
    terms["l2"] = traffic.l2_bytes / chip.l2_bandwidth
    terms["dram"] = traffic.dram_bytes / chip.dram_bandwidth
    terms["latency"] = _latency_seconds(chip, launch, counters, fit, traffic)
    bounds = sorted((Bound(n, s) for n, s in terms.items()), key=lambda b: -b.seconds)
    rest = sum(b.seconds for b in bounds[1:] if b.resource != "latency")
    seconds = _LAUNCH_SECONDS + bounds[0].seconds + _OVERLAP_LEAK * rest
    everything = (*bounds, Bound("launch", _LAUNCH_SECONDS))
    return Estimate(
        seconds, tuple(sorted(everything, key=lambda b: -b.seconds)), traffic.dram_bytes
    )


@dataclass(frozen=True)
class _Traffic:
    l1_bytes: float  # asked of L1 by loads
    l2_bytes: float
    dram_bytes: float
    load_latency: float  # mean, in cycles


def _traffic(chip: Chip, counters: KernelCounters) -> _Traffic:
    """Bytes at each level: L1 keeps what a block touches again, L2 what fits of the grid's."""
    loads = 32.0 * _sectors(counters, "load")
    stores = 32.0 * (_sectors(counters, "store") + _sectors(counters, "atomic"))
    l2_loads = min(loads, 32.0 * counters.read_sectors_per_block)
    unique_reads = 32.0 * counters.read_sectors_unique
    unique_writes = 32.0 * counters.write_sectors_unique
    footprint = unique_reads + unique_writes
    missed = max(0.0, 1.0 - chip.l2_bytes / footprint) if footprint else 0.0
    dram = (
        footprint
        + missed * max(0.0, l2_loads - unique_reads)
        + missed * max(0.0, stores - unique_writes)
    )
    from_l2 = l2_loads / loads if loads else 0.0
    from_dram = min(1.0, dram / (l2_loads + stores)) if l2_loads + stores else 0.0
    beyond = from_dram * _DRAM_CYCLES + (1 - from_dram) * _L2_CYCLES
    return _Traffic(loads, l2_loads + stores, dram, from_l2 * beyond + (1 - from_l2) * _L1_CYCLES)


def _throughput_cycles(chip: Chip, counters: KernelCounters) -> dict[str, float]:
    """Cycles of one multiprocessor that each of its units would need for all the work."""
    classes = counters.by_class
    shared = sum(m.wavefronts for m in counters.memory if m.space == "shared")
    return {
        "issue": counters.warp_instructions / _SCHEDULERS,
        "fp32": 32.0 * classes.get("fp32", 0) / chip.fp32_per_sm,
        "fp64": 32.0 * classes.get("fp64", 0) / chip.fp64_per_sm,
        "int": 32.0 * classes.get("int", 0) / chip.int32_per_sm,
        "sfu": 32.0 * classes.get("sfu", 0) / chip.sfu_per_sm,
        "lsu": shared + sum(_lsu_cycles(m) for m in counters.memory if m.space != "shared"),
    }


def _lsu_cycles(memory: MemoryCounters) -> float:
    return max(float(memory.requests), memory.sectors / _SECTORS_PER_CYCLE)


def _latency_seconds(
    chip: Chip, launch: Launch, counters: KernelCounters, fit: Occupancy, traffic: _Traffic
) -> float:
    """Little's law: the resident warps run in turns, each as long as its chain of waits."""
    warps = launch.blocks * -(-launch.block_threads // 32)
    if not warps or not fit.warps:
        return 0.0
    per_warp = 1.0 / warps
    loads = _requests(counters, "global", "load") * per_warp
    shared = _requests(counters, "shared", "load") * per_warp
    chain = (
        loads * traffic.load_latency / _MEMORY_PARALLELISM
        + shared * _L1_CYCLES / _MEMORY_PARALLELISM
        + counters.warp_instructions * per_warp * _ISSUE_CYCLES
        + counters.barriers * per_warp * _BARRIER_CYCLES
    )
    resident = fit.warps * chip.sms
    turns = max(1.0, warps / resident)
    return turns * chain / chip.clock


def _sectors(counters: KernelCounters, access: str) -> int:
    return sum(m.sectors for m in counters.memory if m.space != "shared" and m.access == access)


def _requests(counters: KernelCounters, space: str, access: str) -> int:
    return sum(m.requests for m in counters.memory if m.space == space and m.access == access)
