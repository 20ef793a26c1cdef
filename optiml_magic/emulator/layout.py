"""Where the fields of the machine's records lie, for the machine code and for Python alike.

A ``Worker`` is one host thread; it runs blocks one after another. A ``Warp`` is 32 lanes of the
block that a worker runs. A ``Site`` is one memory instruction as one worker sees it.
"""

from __future__ import annotations

GLOBAL_BASE = 1 << 40  # generic addresses from here on are global
SHARED_BASE = 1 << 32  # generic window of shared memory
LOCAL_BASE = 2 << 32  # generic window of local memory
FUNCTION_BASE = 3 << 32  # "addresses" of device functions, one for each
WINDOW = 1 << 24  # bytes of the shared window; also more than any local depot

_SIZES = {"i32": 4, "i64": 8, "ptr": 8}


class Record:
    """Named fields at byte offsets, in the order given."""

    def __init__(self, size: int, /, **fields: str) -> None:
        self.size = size
        self.type = fields
        self.offset: dict[str, int] = {}
        at = 0
        for name, type_ in fields.items():
            at = -(-at // _SIZES[type_]) * _SIZES[type_]
            self.offset[name] = at
            at += _SIZES[type_]
        if at > size:
            raise ValueError(f"the fields need {at} bytes, the record has {size}")


WORKER = Record(
    576,
    params="ptr",
    shared="ptr",
    shared_size="i64",
    dynamic_shared="i64",
    table="ptr",  # of allocations, sorted by address
    table_count="i64",
    control="ptr",
    stop="ptr",  # the control's field
    fuel="i64",  # thread instructions left of this slice
    budget="i64",  # and after it
    count="i64",  # 1: count sectors and wavefronts
    fault_kind="i32",
    fault_line="i32",
    fault_lane="i32",
    fault_warp="i32",
    fault_address="i64",
    fault_block="i64",
    block="i64",  # linear index of the running block
    ctaid_x="i32",
    ctaid_y="i32",
    ctaid_z="i32",
    nctaid_x="i32",
    nctaid_y="i32",
    nctaid_z="i32",
    ntid_x="i32",
    ntid_y="i32",
    ntid_z="i32",
    warps="i32",
    warp_states="ptr",
    warp_stride="i64",
    warp_status="ptr",
    sites="ptr",
    blocks="ptr",  # per basic block: warps, lanes (u64 each)
    idle="ptr",  # per predicated instruction: lanes that were predicated off (u64)
    stamps="ptr",  # per sector: 1 + the last block of this worker that read it (u32)
    written="ptr",  # per sector: 1 if any worker wrote it (u8)
    read_per_block="i64",
    warp_stamps="ptr",  # per warp: 1 + the last block in which it used global memory (u32)
    memory_warps="i64",
    log="ptr",  # runs of sectors (first, count: u32 each) in the order of the blocks' first reads
    log_used="i64",  # runs in it
    log_room="i64",  # 0: nothing is logged
    log_block="i64",  # 1 + the block that the last run belongs to
    met="ptr",  # per slot of a sector's address: MEETING
    marks="ptr",  # for the count of bank conflicts: a zero byte for each 4 of shared memory
    watch="ptr",  # null unless the kernel was built with checks
    warp_step="i32",  # the n-th warp to run is (n * step + first) modulo the warps
    warp_first="i32",
    warp="i32",  # index of the running warp
    red_sum="i32",  # bar.red: lanes with a true predicate so far
    red_lanes="i32",
    red_sum_done="i32",  # and of the barrier that completed last
    red_lanes_done="i32",
    local_size="i64",  # bytes per lane
    lowest_local="i64",
    printed="ptr",  # records of what printf was given, 0 where no kernel prints
    printed_bytes="i64",  # used of it
    printed_lost="i64",  # calls for which it had no room
    sink0="i64",  # where lanes that faulted read and write
    sink1="i64",
)

CONTROL = Record(
    64,
    next="i64",  # the place in the order that is taken next
    total="i64",  # where the order ends
    stop="i32",
    order="ptr",  # linear indices of blocks (i64), or null: the grid's own order
)

ALLOCATION = Record(32, lo="i64", size="i64", host="i64", sector="i64")

SITE = Record(
    96,
    requests="i64",
    sectors="i64",
    wavefronts="i64",
    ideal="i64",
    lanes="i64",
    lines="i64",
    contention="i64",
    lo="i64",  # the allocation that this site met last
    size="i64",
    host="i64",
    sector="i64",
    line="i32",
)

# Turns of atomics at the sectors of one slot; of an array of up to SLOTS sectors each has its own.
MEETING = Record(
    16,
    turns="i64",
    blocks="i32",  # that made them
    stamp="i32",  # 1 + the last block of this worker
)
SLOTS = 1 << 16

BLOCK_MARK = 0xFFFFFFFF  # in place of a first sector: the block whose runs follow
COUNTS = 7  # fields at the head of a site that count

WARP = Record(64, live="i32", top="i32", initial="i32", index="i32", local="ptr")
TID = {"x": 64, "y": 192, "z": 320}  # byte offsets of <32 x i32> in the warp record
STACK = 448  # entries of 16 bytes: pc, reconvergence pc, mask
ENTRY = 16

# A call of printf: the format's address, the block, the thread in it, and the arguments' bytes.
PRINT = Record(24, format="i64", block="i64", thread="i32")
PRINT_ARGUMENTS = 256  # bytes; printf takes at most 32 arguments
PRINT_CAPACITY = 1 << 20  # bytes for each worker; as much as a device has unless told otherwise

BARRIERS = 16  # of a block; behind the warps' status lie the arrivals at each (bar.arrive)

# What the checks know. Times are those of one clock that ticks at each act of synchronisation; the
# blocks of a checked launch run one after the other, so a time names its block as well.
WATCH = Record(
    336,
    time="i64",
    began="i64",  # when the running block began
    settled="i64",  # the last time that a barrier of the whole block was passed
    ordinal="i64",  # of the running block, in the order in which they run
    granule="i64",  # a cell covers 1 << granule bytes
    shared_cells="ptr",
    shared_valid="ptr",  # a byte for each byte: see ORIGINS in library/checking
    global_cells="ptr",
    global_valid="ptr",
    local_valid="ptr",
    last_host="i64",  # the allocation that was met last, by its host address
    last_size="i64",
    last_base="i64",  # its first byte among the bytes of all allocations
    starts="ptr",  # when each block began (i64, by ordinal)
    bases="ptr",  # per warp: the last time that all its lanes met
    lanes="ptr",  # [warp][lane][lane]: up to when a lane knows of another
    clocks="ptr",  # [warp][warp]: up to when a warp knows of another
    fences="ptr",  # [warp][warp]: what a warp's last fence made fit to be published
    fenced="i64",  # 1: a fence was executed in the running block
    arrivals="ptr",  # [barrier][warp]: what the warps knew that came there and went on
    arrived="ptr",  # per warp: the point of the barrier it waits at (i32)
    releases="ptr",  # hash table of what was published, by place and block
    entries="i64",  # how many it holds
    trusting="i64",  # 1: too much was published to follow, so blocks count as ordered
    acquired="ptr",  # what the running block acquired
    acquired_count="i64",
    hazards="ptr",
    hazard_count="i64",
    origin="i64",  # the point from which the value that was loaded last is undefined
    origins="ptr",  # per point: the host address of an undefined value that was loaded there
    flights="ptr",  # asynchronous copies that nobody has waited for
    flight_count="i64",
    commits="ptr",  # per thread: groups of copies that it has committed (i32)
    mbarriers="ptr",  # what arrivals at each mbarrier passed on
    mbarrier_count="i64",
    sink0="i64",
    sink1="i64",
)

# A record of an access or a point: time, strength, point, warp and lane, from the highest bit down.
POINT_BITS, POINT_SHIFT, STRONG_SHIFT, TIME_SHIFT = 16, 10, 26, 28

CELL = 32  # bytes: the last write, then three reads that nothing orders before others

HAZARD = Record(64, kind="i64", mine="i64", other="i64", host="i64", block="i64", count="i64")
MOST_HAZARDS = 64

RELEASE = Record(320, place="i64", ordinal="i64", chained="i64")
RELEASED = 64  # byte offset of <32 x i64> in it: up to when each warp's accesses are published
MOST_RELEASES = 1 << 13
ACQUIRED = Record(24, place="i64", time="i64", warp="i64")
MOST_ACQUIRED = 16
# ``place`` is the mbarrier that waits for the copy, 0 where none does, in its phase ``phase``.
FLIGHT = Record(40, valid="ptr", thread="i64", group="i64", place="i64", phase="i64")
MOST_FLIGHTS = 1 << 15

# Behind the head of an mbarrier lies, for each warp, what its arrivals pass on, <32 x i64> each: of
# warps and of its own lanes, in the phase that is under way; the same of the phases that are over.
MBARRIER = Record(64, place="i64", seen="i64")  # seen: phases below it were found over
ARRIVALS = 4 * 256  # bytes for a warp
UNDER_WAY_LANES, OVER, OVER_LANES = 256, 512, 768  # byte offsets; of warps, under way: 0
MBARRIER_BYTES = MBARRIER.size + 32 * ARRIVALS
MOST_MBARRIERS = 64

SLICE = 1 << 20  # thread instructions after which a loop lets the block's other warps run
