"""Rewrite rules: each reads a program and proposes others that mean the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

from optiml_magic.proposers.rewrites.accumulate_in_register import AccumulateInRegister
from optiml_magic.proposers.rewrites.add_at_once import AddAtOnce
from optiml_magic.proposers.rewrites.bit_planes import BitPlanes
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rewrites.block_sum import BlockSum
from optiml_magic.proposers.rewrites.blocked_product import BlockedProduct
from optiml_magic.proposers.rewrites.coalesce_mapping import CoalesceMapping
from optiml_magic.proposers.rewrites.compute_in_block import ComputeInBlock
from optiml_magic.proposers.rewrites.compute_once import ComputeOnce
from optiml_magic.proposers.rewrites.fast_functions import FastFunctions
from optiml_magic.proposers.rewrites.fewer_threads import FewerThreads
from optiml_magic.proposers.rewrites.float_literals import FloatLiterals
from optiml_magic.proposers.rewrites.fuse_elementwise import FuseElementwise
from optiml_magic.proposers.rewrites.fuse_map_reduce import FuseMapReduce
from optiml_magic.proposers.rewrites.greatest_first import GreatestFirst
from optiml_magic.proposers.rewrites.grow_window import GrowWindow
from optiml_magic.proposers.rewrites.hold_list import HoldList
from optiml_magic.proposers.rewrites.hold_slice import HoldSlice
from optiml_magic.proposers.rewrites.index_strength import IndexStrength
from optiml_magic.proposers.rewrites.lend_lanes import LendLanes
from optiml_magic.proposers.rewrites.load_ahead import LoadAhead
from optiml_magic.proposers.rewrites.look_ahead import LookAhead
from optiml_magic.proposers.rewrites.look_up import LookUp
from optiml_magic.proposers.rewrites.merge_runs import MergeRuns
from optiml_magic.proposers.rewrites.one_pass import OnePass
from optiml_magic.proposers.rewrites.pad_shared import PadShared
from optiml_magic.proposers.rewrites.private_counters import PrivateCounters
from optiml_magic.proposers.rewrites.product_before import ProductBefore
from optiml_magic.proposers.rewrites.read_once import ReadOnce
from optiml_magic.proposers.rewrites.restrict_readonly import RestrictReadonly
from optiml_magic.proposers.rewrites.reuse_broadcast import ReuseBroadcast
from optiml_magic.proposers.rewrites.row_to_lanes import RowToLanes
from optiml_magic.proposers.rewrites.scalarise_array import ScalariseArray
from optiml_magic.proposers.rewrites.scatter_rounds import ScatterRounds
from optiml_magic.proposers.rewrites.separate_sums import SeparateSums
from optiml_magic.proposers.rewrites.several_rows import SeveralRows
from optiml_magic.proposers.rewrites.share_loads import ShareLoads
from optiml_magic.proposers.rewrites.share_sections import ShareSections
from optiml_magic.proposers.rewrites.share_state import ShareState
from optiml_magic.proposers.rewrites.share_table import ShareTable
from optiml_magic.proposers.rewrites.skew_sweeps import SkewSweeps
from optiml_magic.proposers.rewrites.skip_rounds import SkipRounds
from optiml_magic.proposers.rewrites.slide_window import SlideWindow
from optiml_magic.proposers.rewrites.split_reduction import SplitReduction
from optiml_magic.proposers.rewrites.split_rounds import SplitRounds
from optiml_magic.proposers.rewrites.split_scan import SplitScan
from optiml_magic.proposers.rewrites.stage_rows import StageRows
from optiml_magic.proposers.rewrites.stage_tile import StageTile
from optiml_magic.proposers.rewrites.stream_once import StreamOnce
from optiml_magic.proposers.rewrites.tabulate_weights import TabulateWeights
from optiml_magic.proposers.rewrites.transpose_tile import TransposeTile
from optiml_magic.proposers.rewrites.unroll_static import UnrollStatic
from optiml_magic.proposers.rewrites.unstage import Unstage
from optiml_magic.proposers.rewrites.vectorise_map import VectoriseMap
from optiml_magic.proposers.rewrites.weighted_rows import WeightedRows
from optiml_magic.proposers.rewrites.word_parallel import WordParallel

if TYPE_CHECKING:
    from optiml_magic.proposers.rewrites.base import Rewrite

REWRITES: tuple[Rewrite, ...] = (
    FuseElementwise(),
    FuseMapReduce(),
    OnePass(),
    WordParallel(),
    HoldList(),
    GreatestFirst(),
    ComputeOnce(),
    ComputeInBlock(),
    SeparateSums(),
    WeightedRows(),
    ProductBefore(),
    CoalesceMapping(),
    TransposeTile(),
    RowToLanes(),
    ShareState(),
    LendLanes(),
    LoadAhead(),
    SplitRounds(),
    StageRows(),
    LookAhead(),
    LookUp(),
    ReadOnce(),
    ReuseBroadcast(),
    ScatterRounds(),
    SplitReduction(),
    SplitScan(),
    BlockedProduct(),
    BitPlanes(),
    StageTile(),
    SlideWindow(),
    GrowWindow(),
    ShareLoads(),
    PrivateCounters(),
    MergeRuns(),
    BlockSum(),
    ShareTable(),
    VectoriseMap(),
    SeveralRows(),
    IndexStrength(),
    ScalariseArray(),
    AccumulateInRegister(),
    AddAtOnce(),
    SkewSweeps(),
    SkipRounds(),
    TabulateWeights(),
    Unstage(),
    HoldSlice(),
    ShareSections(),
    FewerThreads(),
    PadShared(),
    RestrictReadonly(),
    UnrollStatic(),
    StreamOnce(),
    FloatLiterals(),
    FastFunctions(),
    BlockSize(),
)
