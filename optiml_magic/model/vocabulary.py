"""The metric vocabulary: every figure that a measurement may hold, with its unit and meaning.

Names, units and definitions are Nsight Compute's (CUDA Profiling Guide, "Metrics Reference" and
"Source Metrics") where it has one. Names that begin with ``code__``, ``nvml__`` or ``flop`` are
ours, and so are ``smsp__barriers.sum`` and the pipes ``fp32`` and ``sfu`` of the emulated device.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Source = Literal["emulated", "modelled", "sass", "estimated", "compiler", "events", "ncu", "nvml"]
Level = Literal["static", "durations", "energy", "counters", "emulated"]
Combine = Literal["sum", "mean", "max"]

LEVELS: tuple[Level, ...] = get_args(Level)
LEVEL_OF: dict[Source, Level] = {
    "compiler": "static",
    "events": "durations",
    "estimated": "durations",
    "nvml": "energy",
    "ncu": "counters",
    "emulated": "emulated",
    "modelled": "emulated",
    "sass": "emulated",
}
"""The level of measurement that each source belongs to."""

STALLS = (
    "long_scoreboard", "short_scoreboard", "barrier", "membar", "wait", "math_pipe_throttle",
    "mio_throttle", "lg_throttle", "tex_throttle", "not_selected", "no_instruction",
    "branch_resolving", "dispatch_stall", "drain", "imc_miss", "sleeping", "misc", "gmma",
    "selected",
)  # fmt: skip
_SAMPLED = {"no_instruction": "no_instructions", "gmma": "warpgroup_arrive"}  # in samples
"""Why a warp did not issue, as ncu names the reasons; ``selected`` is the one that did."""

CYCLES = "gpc__cycles_elapsed.max"
INSTRUCTIONS = "smsp__inst_executed.sum"


@dataclass(frozen=True)
class Entry:
    """One metric. ``combine`` says how it adds up over the launches of a plan.

    A mean is weighted by the metric ``weight`` of each launch. ``sources`` can give it, best first.
    ``default``: ncu collects it of a kernel that is looked at closely. ``by_line``: ncu gives it
    for each machine instruction as well.
    """

    name: str
    unit: str
    meaning: str
    combine: Combine
    sources: tuple[Source, ...]
    weight: str = INSTRUCTIONS
    default: bool = False
    by_line: bool = False

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels that can give it, each once."""
        return tuple(dict.fromkeys(LEVEL_OF[source] for source in self.sources))


def _sum(name: str, unit: str, meaning: str, *sources: Source, default: bool = False) -> Entry:
    return Entry(name, unit, meaning, "sum", sources or ("ncu",), default=default)


def _mean(
    name: str, unit: str, meaning: str, *sources: Source, weight: str = CYCLES,
    default: bool = False,
) -> Entry:  # fmt: skip
    return Entry(name, unit, meaning, "mean", sources or ("ncu",), weight, default)


def _max(name: str, unit: str, meaning: str, *sources: Source) -> Entry:
    return Entry(name, unit, meaning, "max", sources)


def _by_line(name: str, unit: str, meaning: str) -> Entry:
    return Entry(name, unit, meaning, "sum", ("ncu",), by_line=True)


_EXECUTION = (
    _sum(INSTRUCTIONS, "inst", "warp instructions executed", "ncu", "sass", "emulated",
         default=True),
    _sum("smsp__inst_issued.sum", "inst", "warp instructions issued, replays included"),
    _sum("smsp__thread_inst_executed.sum", "inst", "instructions summed over the active threads",
         "ncu", "emulated"),
    _sum("smsp__thread_inst_executed_pred_on.sum", "inst",
         "instructions summed over the threads that no predicate switched off"),
    _mean("smsp__thread_inst_executed_per_inst_executed.ratio", "thread/inst",
          "active threads of an executed warp instruction, 32 without divergence",
          "ncu", "emulated", weight=INSTRUCTIONS, default=True),
    _sum("smsp__barriers.sum", "warp", "arrivals of warps at barriers", "emulated"),
    _sum("smsp__inst_executed_pipe_fp32.sum", "inst", "warp instructions of float32 arithmetic",
         "emulated"),
    _sum("smsp__inst_executed_pipe_sfu.sum", "inst",
         "warp instructions of the special functions and division", "emulated"),
    _sum("smsp__inst_executed_pipe_fp64.sum", "inst", "warp instructions of float64 arithmetic",
         "ncu", "emulated", default=True),
    *(_sum(f"smsp__inst_executed_pipe_{pipe}.sum", "inst", f"warp instructions of {what}")
      for pipe, what in (("alu", "integer and logic"), ("fma", "float32 and integer products"),
                         ("xu", "special functions and conversions"), ("lsu", "memory access"),
                         ("cbu", "branches and barriers"), ("uniform", "the uniform datapath"))),
    _sum("sm__inst_executed_pipe_tensor.sum", "inst", "warp instructions of the tensor cores"),
    _sum("flop_count.sum", "flop", "floating-point operations, a fused multiply-add counting two",
         "ncu", "emulated"),
    *(_sum(f"smsp__sass_thread_inst_executed_op_{op}_pred_on.sum", "inst",
           f"{op} instructions summed over their threads")
      for op in ("fadd", "fmul", "ffma", "dadd", "dmul", "dfma", "hadd", "hmul", "hfma")),
    *(_sum(f"smsp__inst_executed_op_{space}_{op}.sum", "inst",
           f"warp {what} of {space} memory", "ncu", "sass")
      for space in ("global", "shared", "local") for op, what in (("ld", "loads"),
                                                                  ("st", "stores"))),
    _sum("smsp__inst_executed_op_shared_atom.sum", "inst", "warp atomics on shared memory"),
    _mean("smsp__sass_average_branch_targets_threads_uniform.pct", "%",
          "branches whose threads all go one way", weight=INSTRUCTIONS),
)  # fmt: skip

_OPERATIONS = (("ld", "loads"), ("st", "stores"), ("atom", "atomics that return a value"),
               ("red", "atomics that return nothing"))  # fmt: skip
_MEMORY = (
    *(_sum(f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum", "request",
           f"warp-level global {what}", "ncu", "emulated", default=op in ("ld", "st"))
      for op, what in _OPERATIONS),
    *(_sum(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum", "sector",
           f"32-byte sectors that global {what} touch", "ncu", "emulated",
           default=op in ("ld", "st"))
      for op, what in _OPERATIONS),
    *(_mean(f"l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{op}.ratio",
            "sector/request", f"sectors of one request, for global {what}", "ncu", "emulated",
            weight=f"l1tex__t_requests_pipe_lsu_mem_global_op_{op}.sum")
      for op, what in _OPERATIONS),
    *(_mean(f"smsp__sass_average_data_bytes_per_sector_mem_global_op_{op}.pct", "%",
            f"of the bytes of the sectors that global {what} touch, the part asked for",
            weight=f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum", default=True)
      for op, what in _OPERATIONS[:2]),
    *(_sum(f"l1tex__t_{unit}s_pipe_lsu_mem_local_op_{op}.sum", unit,
           f"{unit}s of local {what}: spills and arrays indexed at run time")
      for unit in ("request", "sector") for op, what in _OPERATIONS[:2]),
    _mean("l1tex__t_sector_hit_rate.pct", "%", "sectors found in the L1", default=True),
    _sum("l1tex__t_sectors_pipe_lsu_mem_global_op_ld_lookup_hit.sum", "sector",
         "sectors of global loads found in the L1"),
    _mean("lts__t_sector_hit_rate.pct", "%", "sectors found in the L2", default=True),
    _sum("lts__t_sectors_srcunit_tex_op_read.sum", "sector", "sectors that the L1s read of the L2",
         "ncu", "modelled"),
    _sum("lts__t_sectors_srcunit_tex_lookup_miss.sum", "sector",
         "sectors asked of the L2 by the L1s that were not there"),
    _sum("dram__bytes.sum", "byte", "bytes between the L2 and device memory", "ncu", "estimated",
         default=True),
    _sum("dram__bytes_read.sum", "byte", "bytes read from device memory", "ncu", "modelled"),
    _sum("dram__bytes_write.sum", "byte", "bytes written to device memory", "ncu", "modelled"),
    _sum("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "wavefront",
         "passes over the banks of shared memory", "ncu", "emulated", default=True),
    _sum("l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "wavefront",
         "passes beyond the first, where lanes share a bank", "ncu", "emulated", default=True),
)  # fmt: skip

_SPEED = (
    _sum(CYCLES, "cycle", "clock cycles from first to last", default=True),
    _mean("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%",
          "the busiest unit of the multiprocessors, of its peak", default=True),
    _mean("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed", "%",
          "device memory, of its peak", default=True),
    _mean("lts__throughput.avg.pct_of_peak_sustained_elapsed", "%", "the L2, of its peak",
          default=True),
    _mean("l1tex__throughput.avg.pct_of_peak_sustained_active", "%", "the L1, of its peak",
          default=True),
    _mean("sm__warps_active.avg.pct_of_peak_sustained_active", "%",
          "warps resident on a multiprocessor, of the most that fit", default=True),
    _mean("lts__d_atomic_input_cycles_active.avg.pct_of_peak_sustained_elapsed", "%",
          "cycles in which the L2 works on atomics"),
    _mean("smsp__issue_active.avg.pct_of_peak_sustained_active", "%",
          "cycles in which a scheduler issues", default=True),
    _mean("smsp__warps_eligible.avg.per_cycle_active", "warp",
          "warps of a scheduler that could issue"),
    _mean("sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active", "%",
          "cycles in which the tensor cores work", default=True),
    *(_mean(f"sm__inst_executed_pipe_{pipe}.avg.pct_of_peak_sustained_active", "%",
            f"the pipe of {what}, of its peak")
      for pipe, what in (("fp64", "float64"), ("xu", "special functions"), ("lsu", "memory access"),
                         ("fma", "float32 and integer products"), ("alu", "integer and logic"))),
    _sum("sm__cycles_active.avg", "cycle", "cycles in which a multiprocessor has work, the mean"),
    _sum("sm__cycles_active.max", "cycle", "the same of the busiest multiprocessor"),
    *(_mean(f"smsp__average_warps_issue_stalled_{why}_per_issue_active.ratio", "warp",
            f"warps that wait ({why}) at each issue", weight=INSTRUCTIONS,
            default=why not in ("misc", "sleeping", "gmma", "tex_throttle"))
      for why in STALLS),
)  # fmt: skip

_STATIC = (
    _max("launch__registers_per_thread", "register/thread", "registers", "compiler", "ncu"),
    _max("launch__local_bytes_per_thread", "byte/thread", "stack frame and spills", "compiler"),
    _sum("launch__spill_bytes", "byte", "spill stores and loads, over all threads", "compiler"),
    _sum("launch__grid_size", "block", "blocks", "compiler", "ncu"),
    _max("launch__block_size", "thread", "threads of a block", "compiler", "ncu"),
    _sum("launch__thread_count", "thread", "threads", "compiler", "ncu"),
    _max("launch__waves_per_multiprocessor", "wave", "the grid over what fits at once", "estimated",
         "ncu"),
    _max("sm__maximum_warps_per_active_cycle_pct", "%", "theoretical occupancy", "estimated",
         "ncu"),
    *(_max(f"launch__occupancy_limit_{what}", "block", f"blocks that the {what} allow",
           "estimated", "ncu") for what in ("registers", "warps", "blocks")),
    _max("launch__occupancy_limit_shared", "block", "blocks that shared memory allows",
         "estimated"),
    _sum("code__instructions", "inst", "machine instructions in the text of the kernels",
         "compiler"),
    *(_sum(f"code__instructions_{kind}", "inst", f"of these: {what}", "compiler")
      for kind, what in (("fp32", "float32 arithmetic"), ("fp64", "float64 arithmetic"),
                         ("fp16", "half-precision arithmetic"), ("tensor", "tensor cores"),
                         ("int", "integer and logic"), ("sfu", "special functions and conversions"),
                         ("memory", "memory access"), ("control", "branches"),
                         ("barrier", "barriers"), ("other", "moves and the rest"))),
    *(_sum(f"code__{name}", "inst", meaning, "compiler") for name, meaning in (
        ("local_loads", "loads from local memory, LDL"),
        ("local_stores", "stores to local memory, STL"),
        ("conversions_fp64", "conversions to and from float64"),
        ("global_loads", "loads from global memory, LDG"),
        ("global_stores", "stores to global memory, STG"))),
    _max("code__global_load_bytes", "byte", "the widest global load of a thread", "compiler"),
    _max("code__global_store_bytes", "byte", "the widest global store of a thread", "compiler"),
)  # fmt: skip

_ENERGY = (
    _sum("nvml__energy.sum", "J", "of the card in one run of the launch plan", "nvml"),
    _mean("nvml__power.avg", "W", "of the card while the plan runs again and again", "nvml"),
    _mean("nvml__clock_sm.avg", "Hz", "of the multiprocessors while it does", "nvml"),
    _mean("nvml__clock_memory.avg", "Hz", "of the memory while it does", "nvml"),
    _max("nvml__temperature.max", "degC", "of the card while it does", "nvml"),
)

_LINES = (
    _by_line("inst_executed", "inst", "warp instructions executed"),
    _by_line("thread_inst_executed", "inst", "the same, summed over active threads"),
    _by_line("thread_inst_executed_true", "inst", "the same, threads switched off left out"),
    _by_line("memory_l2_theoretical_sectors_global", "sector", "sectors of global accesses"),
    _by_line("memory_l2_theoretical_sectors_global_ideal", "sector", "sectors that would do"),
    _by_line("memory_l2_theoretical_sectors_local", "sector", "sectors of local accesses"),
    _by_line("memory_l1_tag_requests_global", "request", "lookups of 128-byte lines"),
    _by_line("memory_l1_wavefronts_shared", "wavefront", "passes over the banks"),
    _by_line("memory_l1_wavefronts_shared_ideal", "wavefront", "passes that would do"),
    _by_line("smsp__pcsamp_sample_count", "sample", "samples of the program counter"),
    *(
        _by_line(
            f"smsp__pcsamp_warps_issue_stalled_{_SAMPLED.get(why, why)}",
            "sample",
            f"of these: {why}",
        )
        for why in STALLS
    ),
)

VOCABULARY: dict[str, Entry] = {
    entry.name: entry for entry in (*_SPEED, *_EXECUTION, *_MEMORY, *_STATIC, *_ENERGY, *_LINES)
}
"""Every metric by name, in the order in which they are shown."""


def default_counters() -> tuple[str, ...]:
    """The metrics that ncu collects of a kernel that is looked at closely."""
    return tuple(entry.name for entry in VOCABULARY.values() if entry.default)


# 14 metrics that cost ncu few replays of a launch: what rewards and roofline read.
_BRIEF = (
    INSTRUCTIONS,
    "smsp__thread_inst_executed_per_inst_executed.ratio",
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "dram__bytes.sum",
    "sm__warps_active.avg.pct_of_peak_sustained_active",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
)


def brief_counters() -> tuple[str, ...]:
    """The metrics that ncu collects of every candidate of a search."""
    return _BRIEF


def line_counters(*, samples: bool = True) -> tuple[str, ...]:
    """The metrics that ncu gives for each machine instruction, with or without its samples."""
    names = [entry.name for entry in VOCABULARY.values() if entry.by_line]
    return tuple(name for name in names if samples or "pcsamp" not in name)
