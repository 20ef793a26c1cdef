"""P11, scan: lanes hand on several states that each round mixes by one matrix.

Its powers by one, two, four rounds and so on are made before the loop, so that shuffles carry the
states alone. The first lane goes on from what all rounds before have left; what a lane finds behind
all rounds up to its own is then the state that its neighbour begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from optiml_magic.kernels.editing import Node
from optiml_magic.kernels.primitives.base import Kernel
from optiml_magic.kernels.primitives.combine import Group
from optiml_magic.kernels.primitives.scan_order import left_out
from optiml_magic.kernels.primitives.scans import Scans
from optiml_magic.kernels.primitives.systems import System, column, live
from optiml_magic.kernels.tree import Block, Declare
from optiml_magic.kernels.types import named

_MIXED = """\
// Adds what rounds leave of earlier states. What is zero stays so, however often it is multiplied.
template <int N, class T> __device__ __forceinline__ void mixed_into(
    T (&states)[N], const T (&matrix)[N][N], const T (&earlier)[N]
) {
    for (int row = 0; row < N; ++row)
        for (int column = 0; column < N; ++column)
            if (earlier[column] != 0) states[row] += matrix[row][column] * earlier[column];
}"""
_POWERS = """\
// Of a matrix, the first, its powers by two rounds, by four and so on.
template <int COUNT, int N, class T> __device__ __forceinline__ void squared(
    T (&powers)[COUNT][N][N]
) {
    #pragma unroll
    for (int power = 1; power < COUNT; ++power)
        for (int row = 0; row < N; ++row)
            for (int column = 0; column < N; ++column)
                for (int between = 0; between < N; ++between) {
                    const T left = powers[power - 1][row][between];
                    const T right = powers[power - 1][between][column];
                    if (left != 0 && right != 0) powers[power][row][column] += left * right;
                }
}"""
_LEAPS = """\
// Of a matrix, its power by so many rounds.
template <int N, class T> __device__ __forceinline__ void power_of(
    T (&power)[N][N], T (&matrix)[N][N], long long rounds
) {
    for (int row = 0; row < N; ++row) power[row][row] = 1;
    for (; rounds > 0; rounds /= 2) {
        T next[2][N][N] = {};
        for (int row = 0; row < N; ++row)
            for (int column = 0; column < N; ++column)
                for (int between = 0; between < N; ++between) {
                    const T last = power[row][between], own = matrix[row][between];
                    const T right = matrix[between][column];
                    if (last != 0 && right != 0) next[0][row][column] += last * right;
                    if (own != 0 && right != 0) next[1][row][column] += own * right;
                }
        for (int row = 0; row < N; ++row)
            for (int column = 0; column < N; ++column) {
                if (rounds % 2 == 1) power[row][column] = next[0][row][column];
                matrix[row][column] = next[1][row][column];
            }
    }
}

// Adds what many rounds leave of earlier states, of those alone that they go on to.
template <int N, class T> __device__ __forceinline__ void leapt_into(
    T (&states)[N], const T (&matrix)[N][N], const T (&reaching)[N][N], const T (&earlier)[N]
) {
    for (int row = 0; row < N; ++row)
        for (int column = 0; column < N; ++column)
            if (reaching[row][column] != 0 && earlier[column] != 0)
                states[row] += matrix[row][column] * earlier[column];
}"""
_LANES = """\
// What all rounds up to that of each lane leave behind, of what its own leaves by itself.
template <int LANES, int COUNT, int N, class T> __device__ __forceinline__ void lanes_mixed(
    T (&part)[N], const T (&powers)[COUNT][N][N]
) {
    const int lane = threadIdx.x % LANES;
    #pragma unroll
    for (int power = 0; 1 << power < LANES; ++power) {
        T earlier[N];
        for (int row = 0; row < N; ++row)
            earlier[row] = __shfl_up_sync(group_mask<LANES>(), part[row], 1 << power, LANES);
        if (lane >= 1 << power) mixed_into(part, powers[power], earlier);
    }
}"""
_WARP = """\
// What the lanes before each leave of `whole`, in `part`; `whole` becomes what all of them leave.
template <int LANES, int COUNT, int N, class T> __device__ __forceinline__ void lanes_before_mixed(
    T (&whole)[N], T (&part)[N], const T (&powers)[COUNT][N][N], bool there
) {
    const int lane = threadIdx.x % LANES;
    const int last = __popc(__ballot_sync(group_mask<LANES>(), there) & group_mask<LANES>()) - 1;
    if (lane == 0) mixed_into(part, powers[0], whole);
    lanes_mixed<LANES>(part, powers);
    for (int row = 0; row < N; ++row) {
        const T mine = part[row], begun = whole[row];
        const T before = __shfl_up_sync(group_mask<LANES>(), mine, 1, LANES);
        whole[row] = __shfl_sync(group_mask<LANES>(), mine, last, LANES);
        part[row] = lane == 0 ? begun : before;
    }
}"""
_BLOCK = """\
// What the threads before each leave of `whole`, in `part`; `whole` becomes what all of them leave.
template <int THREADS, int COUNT, int N, class T>
__device__ __forceinline__ void block_before_mixed(
    T (&whole)[N], T (&part)[N], const T (&powers)[COUNT][N][N], bool there
) {
    __shared__ T warps[THREADS / 32][N], last[N];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    T own[N], begun[N];
    for (int row = 0; row < N; ++row) own[row] = part[row], begun[row] = whole[row];
    lanes_mixed<32>(own, powers);
    for (int row = 0; row < N && lane == 31; ++row) warps[warp][row] = own[row];
    const int count = __syncthreads_count(there);
    for (int other = 0; other < warp; ++other) {
        T next[N];
        for (int row = 0; row < N; ++row) next[row] = warps[other][row];
        mixed_into(next, powers[5], begun);
        for (int row = 0; row < N; ++row) begun[row] = next[row];
    }
    if (lane == 0) mixed_into(part, powers[0], begun);
    lanes_mixed<32>(part, powers);
    for (int row = 0; row < N && threadIdx.x == count - 1; ++row) last[row] = part[row];
    for (int row = 0; row < N; ++row) {
        const T before = __shfl_up_sync(~0u, part[row], 1);
        part[row] = lane == 0 ? begun[row] : before;
    }
    __syncthreads();
    for (int row = 0; row < N; ++row) whole[row] = last[row];
}"""
_COUNT = 6  # powers: of 32 rounds, which a warp makes, the last

HELPERS: Mapping[Group, tuple[str, ...]] = {
    "warp": (_MIXED, _POWERS, _LANES, _WARP),
    "block": (_MIXED, _POWERS, _LANES, _BLOCK),
}


#: What takes several rounds at once.
LEAPS = (_LEAPS,)

Column = tuple[Sequence[str], Sequence[str]]  # what it calls the states, and its statements


def matrix(
    kernel: Kernel, scans: Scans, found: System, fresh: Callable[[str], str],
    swaps: Mapping[Node, Node] | None = None,
) -> list[Column]:  # fmt: skip
    """What finds each column of the matrix of a round, with parts of the kernel exchanged."""
    swaps, made = swaps or {}, list[Column]()
    kept, show = live(found, scans.rest), partial(kernel.spelled, swaps=swaps)
    begun = tuple(s for s in scans.first if s in found.steady)
    zeros = [  # of what begins with nothing of the states
        f"{named(v.type.base, kernel.unit.aliases).name} {v.name} = 0;" for s in scans.first
        if isinstance(s, Declare) for v in s.variables if v in found.depending
    ]  # fmt: skip
    for state in found.states:
        called = {v: fresh(f"{v.name}_by_{state.name}") for v in found.states}
        exchanged = {**swaps, **column(kernel, found, called, show)}
        exchanged |= dict.fromkeys(left_out(kept, scans.rest))
        shown = kernel.show_inside(Block(None, 0, (*begun, *scans.rest)), exchanged)
        own = [line for line in shown.splitlines() if line.strip()]
        made.append(([*called.values()], [*zeros, *own]))
    return made


def filled(found: System, powers: str, columns: Sequence[Column]) -> list[str]:
    """The statements that make the matrix of a round the first of some powers."""
    made = list[str]()
    for at, (called, statements) in enumerate(columns):
        begun = ", ".join(f"{own} = {int(row == at)}" for row, own in enumerate(called))
        made += ["{", f"{found.kind.name} {begun};", *statements]
        made += [f"{powers}[0][{n}][{at}] = {own};" for n, own in enumerate(called)]
        made.append("}")
    return made


@dataclass(frozen=True)
class Mixing:
    """The names of what finds the states of a ``system`` that each lane's own round begins with.

    A round of its own leaves ``parts`` where it begins with nothing; ``powers`` are those of the
    matrix, ``before`` what is found.
    """

    system: System
    powers: str
    parts: tuple[str, ...]
    before: tuple[str, ...]
    whole: str
    each: str

    def powers_of(self, columns: Sequence[Column], test: str) -> list[str]:
        """The declaration of the powers, which are those of a round where there is one."""
        kind, size = self.system.kind.name, len(self.system.states)
        made = [f"{kind} {self.powers}[{_COUNT}][{size}][{size}] = {{}};", f"if ({test}) {{"]
        made += filled(self.system, self.powers, columns)
        return [*made, f"squared({self.powers});", "}"]

    def handed(self, group: Group, count: str, there: str) -> list[str]:
        """The statements that find them, behind those that find the parts."""
        kind, size = self.system.kind.name, len(self.system.states)
        own = [state.name for state in self.system.states]
        arrays = ((self.whole, own), (self.each, self.parts))
        begun = ", ".join(f"{name}[{size}] = {{{', '.join(those)}}}" for name, those in arrays)
        found = ", ".join(f"{name} = {self.each}[{n}]" for n, name in enumerate(self.before))
        scope = "lanes" if group == "warp" else "block"
        along = f"{self.whole}, {self.each}, {self.powers}, {there}"
        return [
            f"{kind} {begun};", f"{scope}_before_mixed<{count}>({along});",
            *(f"{name} = {self.whole}[{n}];" for n, name in enumerate(own)), f"{kind} {found};",
        ]  # fmt: skip
