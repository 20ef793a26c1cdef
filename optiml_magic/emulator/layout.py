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
    512,
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
    marks="ptr",  # for the count of bank conflicts: a zero byte for each 4 of shared memory
    reverse="i32",  # 1: the warps of a block take their turns from the last to the first
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

CONTROL = Record(64, next="i64", total="i64", stop="i32")

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

SLICE = 1 << 20  # thread instructions after which a loop lets the block's other warps run

EXIT = -1  # the pc of the virtual exit block
