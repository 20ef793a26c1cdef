"""P8, a warp's records: what its lanes own lies together, and is moved by all of them together.

Where each thread has a record of its own, behind that of the thread before, a thread that moves its
own touches other sectors than its neighbours do. The lanes of a warp move 16 bytes each that lie
side by side, and change them for their own in shared memory, in rows that are an odd number of
vectors apart, so that lanes meet in no bank. Whether all lanes of a warp are there, and whether
their records lie so, is asked at run time and is the same for all of them; else each moves its own.
Source: CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory", "Shared Memory in Matrix
Multiplication"; Catanzaro, Keller, Garland, "A decomposition for in-place matrix transposition"
(2014), on arrays of structures.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from optiml_magic.kernels.expressions import Expr
from optiml_magic.kernels.polynomial import Polynomial
from optiml_magic.kernels.primitives.base import Kernel, NotLegal
from optiml_magic.kernels.reading import Access

WARP = 32
_PIECE = 16  # bytes that a lane moves at a time
_STEP = 8  # pieces of a record at a time: 128 bytes, a whole line
_UNITS = {16: "uint4", 8: "uint2", 4: "unsigned int"}

_IN_A_ROW = """\
// Where the records of a warp's lanes begin, BYTES each and one behind the other.
template <int BYTES, class T> __device__ __forceinline__ T* first_of(T* own) {
    return (T*)((char*)own - threadIdx.x % 32 * BYTES);
}

// Whether the BYTES of each lane of a warp lie behind those before, from a multiple of 16 on.
template <int BYTES> __device__ __forceinline__ bool in_a_row(const void* own) {
    const unsigned long long first = (unsigned long long)first_of<BYTES>(own);
    return __all_sync(~0u, first % 16 == 0 && first == __shfl_sync(~0u, first, 0));
}"""
_ROWS = """\
// Where a piece of 16 bytes lies in shared memory, of records of STEP: no two lanes in one bank.
template <int STEP> __device__ __forceinline__ int in_rows(int piece) {
    return piece / STEP * (STEP | 1) + piece % STEP;
}"""
_LOAD_PIECES = """\
// Loads the records of a warp's lanes, PIECES of 16 bytes each: lanes load neighbours, STEP of each
// record at a time, and change them for their own.
template <int PIECES, int STEP>
__device__ __forceinline__ void load_pieces(uint4* own, const uint4* first, uint4* rows) {
    const int lane = threadIdx.x % 32;
    uint4 moved[PIECES];
    __syncwarp();
    #pragma unroll
    for (int at = 0; at < PIECES; ++at) {
        const int piece = at % STEP * 32 + lane;
        moved[at] = first[piece / STEP * PIECES + at / STEP * STEP + piece % STEP];
    }
    #pragma unroll
    for (int done = 0; done < PIECES; done += STEP) {
        __syncwarp();
        #pragma unroll
        for (int at = 0; at < STEP; ++at) rows[in_rows<STEP>(at * 32 + lane)] = moved[done + at];
        __syncwarp();
        #pragma unroll
        for (int at = 0; at < STEP; ++at) own[done + at] = rows[in_rows<STEP>(lane * STEP + at)];
    }
}"""
_STORE_PIECES = """\
// Stores them: lanes change what they own for what lies together.
template <int PIECES, int STEP>
__device__ __forceinline__ void store_pieces(const uint4* own, uint4* first, uint4* rows) {
    const int lane = threadIdx.x % 32;
    #pragma unroll
    for (int done = 0; done < PIECES; done += STEP) {
        __syncwarp();
        #pragma unroll
        for (int at = 0; at < STEP; ++at) rows[in_rows<STEP>(lane * STEP + at)] = own[done + at];
        __syncwarp();
        #pragma unroll
        for (int at = 0; at < STEP; ++at) {
            const int piece = at * 32 + lane;
            first[piece / STEP * PIECES + done + piece % STEP] = rows[in_rows<STEP>(piece)];
        }
    }
    __syncwarp();  // whoever asks for its own next may ask for what another lane has stored
}"""
_LOAD_UNITS = """\
// Loads the records of a warp's lanes, an odd number of UNITS each: lanes load neighbouring pieces.
template <int UNITS, class Unit>
__device__ __forceinline__ void load_units(Unit* own, const uint4* first, uint4* rows) {
    const int lane = threadIdx.x % 32, pieces = UNITS * 2 * (int)sizeof(Unit);
    __syncwarp();
    #pragma unroll
    for (int at = 0; at < pieces; at += 32) {
        if (at + lane < pieces) rows[at + lane] = first[at + lane];
    }
    __syncwarp();
    const Unit* units = reinterpret_cast<const Unit*>(rows) + lane * UNITS;
    #pragma unroll
    for (int at = 0; at < UNITS; ++at) own[at] = units[at];
}"""
_STORE_UNITS = """\
// Stores them: lanes change what they own for what lies together.
template <int UNITS, class Unit>
__device__ __forceinline__ void store_units(const Unit* own, uint4* first, uint4* rows) {
    const int lane = threadIdx.x % 32, pieces = UNITS * 2 * (int)sizeof(Unit);
    __syncwarp();
    Unit* units = reinterpret_cast<Unit*>(rows) + lane * UNITS;
    #pragma unroll
    for (int at = 0; at < UNITS; ++at) units[at] = own[at];
    __syncwarp();
    #pragma unroll
    for (int at = 0; at < pieces; at += 32) {
        if (at + lane < pieces) first[at + lane] = rows[at + lane];
    }
    __syncwarp();  // whoever asks for its own next may ask for what another lane has stored
}"""


@dataclass(frozen=True)
class Record:
    """A thread's own ``bytes``, behind those of the thread before: in ``own``, and at ``there``."""

    own: str
    there: str
    bytes: int
    loaded: bool
    stored: bool

    @property
    def unit(self) -> int:
        """How many bytes a lane takes from shared memory at a time."""
        return next(size for size in _UNITS if self.bytes % size == 0)

    @property
    def step(self) -> int:
        """Pieces of a record that are moved at a time: as many as a line has, or all of them."""
        pieces = self.bytes // _PIECE
        return next((n for n in range(_STEP, 1, -1) if pieces % n == 0), pieces)

    @property
    def rows(self) -> int:
        """Pieces of shared memory for each warp."""
        if self.unit < _PIECE:
            return WARP * self.bytes // _PIECE
        return WARP * (self.step | 1)

    @property
    def room(self) -> int:
        """Bytes of shared memory for each warp."""
        return _PIECE * self.rows

    def moves(self, rows: str, *, stores: bool) -> str:
        """The call that moves the records of a warp."""
        const, count = "" if stores else "const ", self.bytes // self.unit
        kind, unit = "units", str(count)
        if self.unit == _PIECE:
            kind, unit = "pieces", f"{count}, {self.step}"
        word = f"{'store' if stores else 'load'}_{kind}<{unit}>"
        own = f"reinterpret_cast<{'const ' if stores else ''}{_UNITS[self.unit]}*>({self.own})"
        first = f"reinterpret_cast<{const}uint4*>(first_of<{self.bytes}>(&{self.there}))"
        return f"{word}({own}, {first}, {rows});"


def behind_each_other(base: Polynomial, count: int, size: int) -> bool:
    """Whether ``count`` elements from ``base`` on lie behind those of the thread before.

    And are more than one access of 16 bytes takes, in whole words.
    """
    by = base.coefficient("threadIdx.x")
    return by is not None and by.value == count and count * size > _PIECE and count * size % 4 == 0


@dataclass(frozen=True, eq=False)
class Owned:
    """``count`` elements of an array from ``base`` on, which the thread alone stores to.

    They are ``loaded`` before where their first values are asked for. ``kind`` is their type, and
    ``size`` its bytes. Of a structure of which members are accessed ``whole`` is what stands for
    it, or for where it is, and what follows the name of the local array there.
    """

    array: str
    base: Polynomial
    count: int
    accesses: tuple[Access, ...]
    loaded: bool
    stored: bool
    kind: str
    size: int
    whole: Mapping[Expr, str] = field(default_factory=dict)

    @property
    def in_rows(self) -> bool:
        """Whether those of neighbouring threads lie one behind the other, several vectors each."""
        return behind_each_other(self.base, self.count, self.size)

    @property
    def room(self) -> int:
        """Bytes of shared memory in which a warp changes them."""
        return self.record("", "").room

    def record(self, own: str, there: str) -> Record:
        """What the lanes of a warp move together."""
        return Record(own, there, self.count * self.size, self.loaded, self.stored)


class Rows:
    """The shared memory through which a warp's records come and go."""

    def __init__(self, kernel: Kernel, records: Sequence[Record], taken: Sequence[str]) -> None:
        block = kernel.block
        if block[0] is None or block[0] % WARP or block[1:] != (1, 1):
            raise NotLegal("its blocks are not whole warps of one row")
        self.records = records
        self.together = kernel.fresh("together", *taken)
        self.name = kernel.fresh("rows", *taken)
        self.warps = f"{kernel.launch.block[0]} / {WARP}"

    def opening(self) -> list[str]:
        """The test that all lanes of a warp agree on, and what they share."""
        tests = [f"in_a_row<{r.bytes}>(&{r.there})" for r in self.records]
        size = max(r.rows for r in self.records)
        return [
            f"const bool {self.together} = {' && '.join(['__activemask() == ~0u', *tests])};",
            f"__shared__ uint4 {self.name}[{self.warps}][{size}];",
        ]

    def moved(self, record: Record, alone: str, *, stores: bool) -> str:
        """A record to or from memory: with those of the warp, or ``alone``."""
        with_others = record.moves(f"{self.name}[threadIdx.x / {WARP}]", stores=stores)
        return f"if ({self.together}) {{\n{with_others}\n}} else {{\n{alone}\n}}"

    def helpers(self) -> list[str]:
        """The functions that do it, each once."""
        found = [_IN_A_ROW]
        for record in self.records:
            whole = record.unit == _PIECE
            found += [_ROWS] if whole else []
            if record.loaded:
                found.append(_LOAD_PIECES if whole else _LOAD_UNITS)
            if record.stored:
                found.append(_STORE_PIECES if whole else _STORE_UNITS)
        return [*dict.fromkeys(found)]
