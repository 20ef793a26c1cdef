"""Micro-profiling tools, one file each; the table below is the family."""

from __future__ import annotations

from optiml_magic.findings.accidental_fp64 import AccidentalFp64
from optiml_magic.findings.atomic_contention import AtomicContention
from optiml_magic.findings.bank_conflicts import BankConflicts
from optiml_magic.findings.barrier_stalls import BarrierStalls
from optiml_magic.findings.base import Tool, diagnose, wanted
from optiml_magic.findings.cache_reuse import CacheReuse
from optiml_magic.findings.constant_data import ConstantData
from optiml_magic.findings.divergence import Divergence
from optiml_magic.findings.dominant_stall import DominantStall
from optiml_magic.findings.dram_saturated import DramSaturated
from optiml_magic.findings.high_registers import HighRegisters
from optiml_magic.findings.launch_overhead import LaunchOverhead
from optiml_magic.findings.local_arrays import LocalArrays
from optiml_magic.findings.low_ilp import LowIlp
from optiml_magic.findings.low_work import LowWorkPerThread
from optiml_magic.findings.ncu_rules import NcuRules
from optiml_magic.findings.occupancy_limiter import OccupancyLimiter
from optiml_magic.findings.partial_warps import PartialWarps
from optiml_magic.findings.scalar_access import ScalarAccess
from optiml_magic.findings.sector_efficiency import SectorEfficiency
from optiml_magic.findings.shared_reuse import SharedReuse
from optiml_magic.findings.slow_math import SlowMath
from optiml_magic.findings.spills import Spills
from optiml_magic.findings.subject import Subject
from optiml_magic.findings.tail_effect import TailEffect
from optiml_magic.findings.tensor_cores import TensorCores
from optiml_magic.findings.uncoalesced import UncoalescedAccess

TOOLS: tuple[Tool, ...] = (
    UncoalescedAccess(),
    SectorEfficiency(),
    DramSaturated(),
    CacheReuse(),
    SharedReuse(),
    ScalarAccess(),
    ConstantData(),
    BankConflicts(),
    AtomicContention(),
    Spills(),
    LocalArrays(),
    HighRegisters(),
    OccupancyLimiter(),
    DominantStall(),
    BarrierStalls(),
    Divergence(),
    PartialWarps(),
    LowIlp(),
    AccidentalFp64(),
    SlowMath(),
    TensorCores(),
    TailEffect(),
    LowWorkPerThread(),
    LaunchOverhead(),
    NcuRules(),
)

__all__ = ["TOOLS", "Subject", "Tool", "diagnose", "wanted"]
