"""A time model: counted work over published rates, with the slowest resource deciding.

Each term is the time that one resource alone would need; the estimate is the launch overhead plus
the longest term plus a share of the others, since overlap is never perfect. The terms follow the
roofline (Williams et al. 2009) for throughput and Little's law (Volkov 2016) for latency. The
constants are ours, chosen on one NVIDIA H200 against the samples in
``benchmarks/results/estimate-h200.json``; for other chips the published rates scale them, which
nobody has checked.
"""

from __future__ import annotations

from dataclasses import dataclass

from optiml_magic.chips import Chip
from optiml_magic.model.counters import KernelCounters, MemoryCounters
from optiml_magic.model.launch import Launch, LaunchPlan
from optiml_magic.model.measurement import Bound
from optiml_magic.profilers.occupancy import Occupancy

RATIO_ERROR = 1.4
"""A ratio of two estimates is claimed to lie within this factor of the measured one."""

_LAUNCH_SECONDS = 2.5e-6
_OVERLAP_LEAK = 0.15  # share of every other throughput term that is not hidden behind the longest
_SCHEDULERS = 4  # warp instructions issued per clock and multiprocessor
_BLOCK_CYCLES = 1.2  # of the whole chip, to start one block
_DRAM_EFFICIENCY = 0.8  # of the published bandwidth, in a kernel that streams
_PARTIAL_STORE = 3.5  # a store of part of a sector, in stores of whole ones
_DRAM_CYCLES, _L2_CYCLES, _L1_CYCLES = 800.0, 270.0, 35.0  # latencies under load
_ISSUE_CYCLES = 4.5  # between dependent instructions of one warp
_START_CYCLES = 700.0  # from a block's place becoming free to its first load, and its drain
_BARRIER_CYCLES = 30.0
# Turns of atomics, by ``benchmarks/results/atomics-h200.json``: of one line of global memory, one
# after the other, and in stores of whole sectors, wherever they are.
_TURN_CYCLES, _TURN_STORE = 5.0, 2.0
# Of a turn at a float of shared memory, by ``k8_ata`` and ``tpch_q1`` in newcomers-h200.jsonl.
_SWAP_CYCLES = 3.7
_MOST_IN_FLIGHT = 8.0  # loads of one warp


@dataclass(frozen=True)
class Estimate:
    """Seconds of one launch, the terms it came from, and the DRAM traffic it assumed."""

    seconds: float
    bounds: tuple[Bound, ...]  # longest first
    dram_bytes: float


def estimate(chip: Chip, launch: Launch, counters: KernelCounters, fit: Occupancy) -> Estimate:
    """The estimated duration of one launch on ``chip``."""
    traffic = _traffic(chip, counters)
    active = min(1.0, launch.blocks / chip.sms)  # multiprocessors that get a block at all
    terms = {
        name: cycles / (chip.sms * active * chip.clock)
        for name, cycles in _throughput_cycles(chip, counters).items()
    }
    terms["l2"] = traffic.l2_bytes / chip.l2_bandwidth
    terms["dram"] = traffic.dram_bytes / (_DRAM_EFFICIENCY * chip.dram_bandwidth)
    terms["blocks"] = launch.blocks * _BLOCK_CYCLES / chip.clock
    terms["atomics"] = _TURN_CYCLES * (counters.atomic_turns_of_a_line or 0) / chip.clock
    terms["latency"] = _latency_seconds(chip, launch, counters, fit, traffic)
    bounds = sorted((Bound(n, s) for n, s in terms.items()), key=lambda b: -b.seconds)
    rest = sum(b.seconds for b in bounds[1:] if b.resource not in ("latency", "blocks"))
    seconds = _LAUNCH_SECONDS + bounds[0].seconds + _OVERLAP_LEAK * rest
    everything = (*bounds, Bound("launch", _LAUNCH_SECONDS))
    return Estimate(
        seconds, tuple(sorted(everything, key=lambda b: -b.seconds)), traffic.dram_bytes
    )


def zeroing(chip: Chip, plan: LaunchPlan) -> float:
    """Seconds to clear the buffers that a plan wants cleared: a launch and its bytes each."""
    bandwidth = _DRAM_EFFICIENCY * chip.dram_bandwidth
    return len(plan.zeros) * _LAUNCH_SECONDS + plan.zeroed_bytes / bandwidth


@dataclass(frozen=True)
class _Traffic:
    l2_bytes: float  # partial stores counted at what they cost
    dram_bytes: float
    load_latency: float  # mean, in cycles


def _traffic(chip: Chip, counters: KernelCounters) -> _Traffic:
    """Bytes at each level: L1 keeps what a block touches again, L2 what fits of the grid's.

    Partial stores to one sector meet in L2, so DRAM sees each written sector once.
    """
    loads = 32.0 * sum(m.sectors for m in _accesses(counters, "load"))
    l2_loads = min(loads, 32.0 * (counters.read_sectors_per_block or 0))
    stores = sum(_store_cost(m) for m in _accesses(counters, "store"))
    l2_stores = 32.0 * (stores + _TURN_STORE * (counters.atomic_turns or 0))
    unique_reads = 32.0 * (counters.read_sectors_unique or 0)
    footprint = unique_reads + 32.0 * (counters.write_sectors_unique or 0)
    missed = max(0.0, 1.0 - chip.l2_bytes / footprint) if footprint else 0.0
    dram = footprint + missed * max(0.0, l2_loads - unique_reads)
    # Sectors that a misaligned request takes besides do not make its wait any shorter.
    waits = 32.0 * sum(
        m.ideal if m.sectors <= 2 * m.ideal else m.sectors for m in _accesses(counters, "load")
    )
    from_l2 = min(1.0, l2_loads / waits) if waits else 0.0
    from_dram = min(1.0, unique_reads / l2_loads) if l2_loads else 0.0
    beyond = from_dram * _DRAM_CYCLES + (1 - from_dram) * _L2_CYCLES
    return _Traffic(l2_loads + l2_stores, dram, from_l2 * beyond + (1 - from_l2) * _L1_CYCLES)


def _throughput_cycles(chip: Chip, counters: KernelCounters) -> dict[str, float]:
    """Cycles of one multiprocessor that each of its units would need for all the work."""
    classes = counters.by_class
    shared = sum(
        (m.wavefronts + m.contention) * (_SWAP_CYCLES if m.swaps else 1.0)
        for m in counters.memory
        if m.space == "shared"
    )
    global_ = [m for m in counters.memory if m.space != "shared"]
    return {
        "issue": counters.warp_instructions / _SCHEDULERS,
        "fp32": 32.0 * classes.get("fp32", 0) / chip.fp32_per_sm,
        "fp64": 32.0 * classes.get("fp64", 0) / chip.fp64_per_sm,
        "int": 32.0 * classes.get("int", 0) / chip.int32_per_sm,
        "sfu": 32.0 * classes.get("sfu", 0) / chip.sfu_per_sm,
        # One tag lookup, of a 128-byte line, and one shared wavefront a cycle.
        "lsu": shared + sum(max(m.requests, m.lines) for m in global_),
    }


def _store_cost(memory: MemoryCounters) -> float:
    """Sectors of a store, those written only in part at what they cost the L2."""
    partial = memory.sectors > 2 * memory.ideal
    return memory.sectors * (_PARTIAL_STORE if partial else 1.0)


def _latency_seconds(
    chip: Chip, launch: Launch, counters: KernelCounters, fit: Occupancy, traffic: _Traffic
) -> float:
    """Little's law: the resident warps run in turns, each as long as its chain of waits."""
    warps = launch.blocks * -(-launch.block_threads // 32)
    if not warps or not fit.warps:
        return 0.0
    # A launch may be padded with threads that leave at once; they hide no latency.
    busy = counters.memory_warps or warps
    per_warp = 1.0 / busy
    loads = sum(m.requests for m in _accesses(counters, "load")) * per_warp
    shared = [m for m in counters.memory if m.space == "shared" and m.access == "load"]
    chain = (
        _START_CYCLES
        + loads * traffic.load_latency / _in_flight(_accesses(counters, "load"))
        + sum(m.requests for m in shared) * per_warp * _L1_CYCLES / _in_flight(shared)
        + counters.warp_instructions * per_warp * _ISSUE_CYCLES
        + counters.barriers * per_warp * _BARRIER_CYCLES
    )
    turns = max(1.0, warps / (fit.warps * chip.sms))
    return turns * chain / chip.clock


def _in_flight(loads: list[MemoryCounters]) -> float:
    """Loads that one warp has on their way: those of the loop body, as the compiler unrolled it."""
    most = max((m.requests for m in loads), default=0)
    body = sum(1 for m in loads if 2 * m.requests > most)
    return min(_MOST_IN_FLIGHT, max(1.0, float(body)))


def _accesses(counters: KernelCounters, *kinds: str) -> list[MemoryCounters]:
    return [m for m in counters.memory if m.space != "shared" and m.access in kinds]
