"""Counters to metrics: Nsight Compute's names, one unit each, summed over a plan's launches."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from optiml_magic.model.build import Resources
from optiml_magic.model.counters import KernelCounters, MemoryCounters
from optiml_magic.model.launch import Launch
from optiml_magic.model.measurement import Metric, Source
from optiml_magic.profilers.occupancy import Occupancy

_OPERATIONS = {"load": "ld", "store": "st", "atomic": "atom"}


def counted(kernels: Sequence[KernelCounters], source: Source) -> list[Metric]:
    """The metrics that follow from counts. Ratios are left out where their divisor is zero."""
    warp = sum(k.warp_instructions for k in kernels)
    thread = sum(k.thread_instructions for k in kernels)
    found = [
        Metric("smsp__inst_executed.sum", warp, "inst", source),
        Metric("smsp__thread_inst_executed.sum", thread, "inst", source),
        Metric("smsp__barriers.sum", sum(k.barriers for k in kernels), "warp", source),
    ]
    if warp:
        ratio = "smsp__thread_inst_executed_per_inst_executed.ratio"
        found.append(Metric(ratio, thread / warp, "thread/inst", source))
    for pipe in ("fp64", "fp32", "sfu"):
        executed = sum(k.by_class.get(pipe, 0) for k in kernels)
        found.append(Metric(f"smsp__inst_executed_pipe_{pipe}.sum", executed, "inst", source))
    memory = [m for k in kernels for m in k.memory]
    for access, short in _OPERATIONS.items():
        found += _global(
            short, [m for m in memory if (m.space, m.access) == ("global", access)], source
        )
    found += _shared([m for m in memory if m.space == "shared"], source)
    return found


def cached(kernels: Sequence[KernelCounters]) -> list[Metric]:
    """Traffic behind the L1, by the model of ``emulator/caches.py``."""
    reads = sum(k.read_sectors_per_block or 0 for k in kernels)
    found = [Metric("lts__t_sectors_srcunit_tex_op_read.sum", reads, "sector", "modelled")]
    missed = [k.dram_read_sectors for k in kernels]
    if None not in missed:
        bytes_ = 32 * sum(m or 0 for m in missed)
        found.append(Metric("dram__bytes_read.sum", bytes_, "byte", "modelled"))
    written = 32 * sum(k.write_sectors_unique or 0 for k in kernels)
    return [*found, Metric("dram__bytes_write.sum", written, "byte", "modelled")]


def _global(short: str, memory: Sequence[MemoryCounters], source: Source) -> Iterable[Metric]:
    requests = sum(m.requests for m in memory)
    sectors = sum(m.sectors for m in memory)
    stem = f"pipe_lsu_mem_global_op_{short}"
    yield Metric(f"l1tex__t_requests_{stem}.sum", requests, "request", source)
    yield Metric(f"l1tex__t_sectors_{stem}.sum", sectors, "sector", source)
    if requests:
        name = f"l1tex__average_t_sectors_per_request_{stem}.ratio"
        yield Metric(name, sectors / requests, "sector/request", source)


def _shared(memory: Sequence[MemoryCounters], source: Source) -> Iterable[Metric]:
    wavefronts = sum(m.wavefronts for m in memory)
    conflicts = sum(m.wavefronts - m.ideal for m in memory)
    yield Metric("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", wavefronts, "wavefront", source)
    yield Metric(
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", conflicts, "wavefront", source
    )


def compiled(resources: Sequence[Resources], launches: Sequence[Launch]) -> list[Metric]:
    """What ptxas says of the kernels: the worst of the launches."""
    spills = sum(
        (r.spill_store_bytes + r.spill_load_bytes) * launch.threads
        for r, launch in zip(resources, launches, strict=True)
    )
    return [
        Metric(
            "launch__registers_per_thread",
            max(r.registers for r in resources),
            "register/thread",
            "compiler",
        ),
        Metric(
            "launch__local_bytes_per_thread",
            max(r.local_bytes for r in resources),
            "byte/thread",
            "compiler",
        ),
        Metric("launch__spill_bytes", spills, "byte", "compiler"),
        Metric("launch__grid_size", sum(x.blocks for x in launches), "block", "compiler"),
        Metric("launch__block_size", max(x.block_threads for x in launches), "thread", "compiler"),
        Metric("launch__thread_count", sum(x.threads for x in launches), "thread", "compiler"),
    ]


def fitted(found: Occupancy) -> list[Metric]:
    """Theoretical occupancy and its limits, of the launch that takes longest."""
    limits = [
        Metric(f"launch__occupancy_limit_{name}", blocks, "block", "estimated")
        for name, blocks in found.limits.items()
    ]
    return [
        Metric("sm__maximum_warps_per_active_cycle_pct", found.percent, "%", "estimated"),
        Metric("launch__waves_per_multiprocessor", found.waves, "wave", "estimated"),
        *limits,
    ]
