"""What CUDA C++ adds to C++: each name, one line on it, and where NVIDIA says more.

Sections are those of the CUDA C++ Programming Guide, "C++ Language Extensions"; the CUDA Math API
is a book of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["keyword", "class", "instance", "function"]
_GUIDE, _MATH = "CUDA C++ Programming Guide", "CUDA Math API"


@dataclass(frozen=True)
class Builtin:
    """One name. ``call`` is how it is written, ``means`` what it is or does."""

    name: str
    call: str
    means: str
    section: str
    kind: Kind

    def __str__(self) -> str:
        book = self.section if self.section == _MATH else f"{_GUIDE}, {self.section}"
        return f"{self.call}: {self.means} ({book})"


_TABLE: tuple[tuple[str, Kind, dict[str, str]], ...] = (
    (
        "Function Execution Space Specifiers",
        "keyword",
        {
            "__global__": "a kernel: runs on the device, launched from the host, returns void",
            "__device__": "a function or a variable of the device",
            "__host__": "a function of the host; with __device__ it is compiled for both",
            "__noinline__": "the compiler should not inline this function",
            "__forceinline__": "the compiler has to inline this function",
        },
    ),
    (
        "Variable Memory Space Specifiers",
        "keyword",
        {
            "__shared__": "memory that the threads of a block share, and that lasts as long as it",
            "__constant__": "64 KB that kernels read through a cache, fast where lanes agree",
            "__managed__": "a variable that both host and device use",
            "__restrict__": "nothing else points there, so loads may be cached and moved",
            "__grid_constant__": "a const parameter that is read where it lies, without a copy",
        },
    ),
    (
        "Launch Bounds",
        "keyword",
        {
            "__launch_bounds__": "(threads, blocks): most threads a block, fewest blocks an SM",
        },
    ),
    (
        "#pragma unroll",
        "keyword",
        {
            "unroll": "of the loop below: as often as said, else fully where its count is known",
        },
    ),
    (
        "Built-in Variables",
        "instance",
        {
            "threadIdx": "the index of this thread in its block: .x, .y, .z",
            "blockIdx": "the index of this block in the grid: .x, .y, .z",
            "blockDim": "threads of a block, by axis: .x, .y, .z",
            "gridDim": "blocks of the grid, by axis: .x, .y, .z",
            "warpSize": "threads of a warp: 32",
        },
    ),
    (
        "Synchronization Functions",
        "function",
        {
            "__syncthreads": "(): waits for all threads of the block, and shows what they wrote",
            "__syncthreads_count": "(predicate): the same; for how many threads it holds",
            "__syncthreads_and": "(predicate): the same; whether it holds for all threads",
            "__syncthreads_or": "(predicate): the same; whether it holds for any thread",
            "__syncwarp": "(mask): waits for the lanes of the mask, and shows what they wrote",
        },
    ),
    (
        "Memory Fence Functions",
        "function",
        {
            "__threadfence": "(): earlier writes are seen by the device before later ones",
            "__threadfence_block": "(): earlier writes are seen by the block before later ones",
            "__threadfence_system": "(): earlier writes are seen by all before later ones",
        },
    ),
    (
        "Warp Shuffle Functions",
        "function",
        {
            "__shfl_sync": "(mask, value, lane, width): the value of that lane",
            "__shfl_up_sync": "(mask, value, delta, width): the value of the lane delta below",
            "__shfl_down_sync": "(mask, value, delta, width): the value of the lane delta above",
            "__shfl_xor_sync": "(mask, value, lane_mask, width): the value of lane ^ lane_mask",
        },
    ),
    (
        "Warp Vote Functions",
        "function",
        {
            "__all_sync": "(mask, predicate): whether it holds on all lanes of the mask",
            "__any_sync": "(mask, predicate): whether it holds on any lane of the mask",
            "__ballot_sync": "(mask, predicate): the lanes on which it holds, a bit each",
            "__activemask": "(): the lanes that run here now, a bit each",
        },
    ),
    (
        "Warp Match Functions",
        "function",
        {
            "__match_any_sync": "(mask, value): the lanes that have the same value, a bit each",
            "__match_all_sync": "(mask, value, &same): the mask if all have one value, else 0",
        },
    ),
    (
        "Warp Reduce Functions",
        "function",
        {
            "__reduce_add_sync": "(mask, value): the sum of an integer over the lanes",
            "__reduce_min_sync": "(mask, value): the least of an integer over the lanes",
            "__reduce_max_sync": "(mask, value): the greatest of an integer over the lanes",
            "__reduce_and_sync": "(mask, value): bits set on all lanes",
            "__reduce_or_sync": "(mask, value): bits set on any lane",
            "__reduce_xor_sync": "(mask, value): bits set on an odd number of lanes",
        },
    ),
    (
        "Atomic Functions",
        "function",
        {
            "atomicAdd": "(address, value): adds in one step; returns what was there",
            "atomicSub": "(address, value): subtracts in one step; returns what was there",
            "atomicExch": "(address, value): stores in one step; returns what was there",
            "atomicMin": "(address, value): keeps the lesser; returns what was there",
            "atomicMax": "(address, value): keeps the greater; returns what was there",
            "atomicInc": "(address, limit): one more, 0 from the limit on; returns what was there",
            "atomicDec": "(address, limit): one less, the limit after 0; returns what was there",
            "atomicCAS": "(address, expected, value): stores where equal; returns what was there",
            "atomicAnd": "(address, value): bitwise and in one step; returns what was there",
            "atomicOr": "(address, value): bitwise or in one step; returns what was there",
            "atomicXor": "(address, value): exclusive or in one step; returns what was there",
            "atomicAdd_block": "(address, value): atomic for the threads of this block alone",
            "atomicAdd_system": "(address, value): atomic for host and devices too",
        },
    ),
    (
        "Read-Only Data Cache Load Function",
        "function",
        {
            "__ldg": "(address): loads what nobody writes while the kernel runs",
        },
    ),
    (
        "Load Functions Using Cache Hints",
        "function",
        {
            "__ldca": "(address): loads and keeps it at all levels",
            "__ldcg": "(address): loads and keeps it in the L2, not in the L1",
            "__ldcs": "(address): loads what is read once, the first to be evicted",
            "__ldlu": "(address): loads for the last time",
            "__ldcv": "(address): loads anew, whatever the caches hold",
        },
    ),
    (
        "Store Functions Using Cache Hints",
        "function",
        {
            "__stwb": "(address, value): stores and keeps it at all levels",
            "__stcg": "(address, value): stores and keeps it in the L2",
            "__stcs": "(address, value): stores what is not read soon, the first to be evicted",
            "__stwt": "(address, value): stores through the L2 to memory",
        },
    ),
    (
        "Built-in Vector Types",
        "class",
        {
            "dim3": "three unsigned numbers, 1 where not given: extents of grids and blocks",
            "char4": "four signed bytes, loaded and stored at once",
            "uchar4": "four bytes, loaded and stored at once",
            "short2": "two 16-bit integers, loaded and stored at once",
            "short4": "four 16-bit integers, loaded and stored at once",
            "int2": "two integers, loaded and stored at once: 8 bytes, aligned so",
            "int4": "four integers, loaded and stored at once: 16 bytes, aligned so",
            "uint2": "two unsigned integers, loaded and stored at once: 8 bytes, aligned so",
            "uint4": "four unsigned integers, loaded and stored at once: 16 bytes, aligned so",
            "float2": "two floats, loaded and stored at once: 8 bytes, aligned so",
            "float3": "three floats, 12 bytes, loaded one by one",
            "float4": "four floats, loaded and stored at once: 16 bytes, aligned so",
            "double2": "two doubles, loaded and stored at once: 16 bytes, aligned so",
        },
    ),
    (
        "Built-in Vector Types",
        "function",
        {
            "make_int2": "(x, y): an int2",
            "make_int4": "(x, y, z, w): an int4",
            "make_uint4": "(x, y, z, w): a uint4",
            "make_float2": "(x, y): a float2",
            "make_float3": "(x, y, z): a float3",
            "make_float4": "(x, y, z, w): a float4",
            "make_double2": "(x, y): a double2",
        },
    ),
    (
        "Asynchronous Data Copies using Pipelines",
        "function",
        {
            "__pipeline_memcpy_async": "(shared, global, bytes): a copy that is not waited for",
            "__pipeline_commit": "(): the copies so far become one batch",
            "__pipeline_wait_prior": "(n): waits for all batches but the last n",
        },
    ),
    (
        "Warp Matrix Functions",
        "function",
        {
            "load_matrix_sync": "(tile, address, stride): loaded for the tensor cores, by a warp",
            "store_matrix_sync": "(address, tile, stride, layout): stored, by a warp",
            "fill_fragment": "(tile, value): all elements of a tile set",
            "mma_sync": "(d, a, b, c): d = a * b + c on the tensor cores, by a warp",
        },
    ),
    (
        "Time Function",
        "function",
        {
            "clock": "(): a counter of this SM's cycles",
            "clock64": "(): a counter of this SM's cycles, 64 bits",
        },
    ),
    (
        "Nanosleep Function",
        "function",
        {
            "__nanosleep": "(ns): this thread sleeps for about so long",
        },
    ),
    (
        "Compiler Optimization Hint Functions",
        "function",
        {
            "__builtin_assume": "(condition): the compiler may take it for true",
            "__builtin_assume_aligned": "(pointer, bytes): the pointer, taken for aligned so",
            "__builtin_expect": "(value, usual): the value, with what it usually is",
            "__builtin_unreachable": "(): the compiler may take it that nobody comes here",
        },
    ),
    (
        "Address Space Conversion Functions",
        "function",
        {
            "__cvta_generic_to_shared": "(pointer): a shared address, as inline PTX takes it",
            "__cvta_generic_to_global": "(pointer): a global address, as inline PTX takes it",
        },
    ),
    (
        "Formatted Output",
        "function",
        {
            "printf": "(format, ...): prints from a kernel, when it has ended",
        },
    ),
    ("Assertion", "function", {"assert": "(condition): ends the kernel where it does not hold"}),
    ("Trap function", "function", {"__trap": "(): ends the kernel with an error"}),
    (
        _MATH,
        "function",
        {
            "fmaf": "(x, y, z): x * y + z, rounded once",
            "fma": "(x, y, z): x * y + z in double, rounded once",
            "rsqrtf": "(x): 1 / sqrt(x)",
            "sqrtf": "(x): square root",
            "expf": "(x): e to the x",
            "exp2f": "(x): 2 to the x",
            "logf": "(x): natural logarithm",
            "log2f": "(x): logarithm to the base 2",
            "powf": "(x, y): x to the y",
            "sinf": "(x): sine",
            "cosf": "(x): cosine",
            "tanhf": "(x): hyperbolic tangent",
            "erff": "(x): error function",
            "fabsf": "(x): absolute value",
            "fmaxf": "(x, y): the greater; of NaN and a number the number",
            "fminf": "(x, y): the lesser; of NaN and a number the number",
            "floorf": "(x): rounded down",
            "ceilf": "(x): rounded up",
            "roundf": "(x): rounded to the nearest, halves away from zero",
            "rintf": "(x): rounded to the nearest, halves to even",
            "max": "(x, y): the greater",
            "min": "(x, y): the lesser",
            "__expf": "(x): e to the x, fast and less exact",
            "__logf": "(x): natural logarithm, fast and less exact",
            "__sinf": "(x): sine, fast and less exact",
            "__cosf": "(x): cosine, fast and less exact",
            "__powf": "(x, y): x to the y, fast and less exact",
            "__fdividef": "(x, y): x / y, fast and less exact",
            "__frcp_rn": "(x): 1 / x, rounded to the nearest",
            "__fmaf_rn": "(x, y, z): x * y + z, rounded once to the nearest",
            "__popc": "(x): how many bits are set",
            "__clz": "(x): how many zeros lead",
            "__ffs": "(x): the lowest bit that is set, counted from 1; 0 for none",
            "__brev": "(x): the bits in reverse order",
            "__byte_perm": "(x, y, selector): four of eight bytes, chosen by the selector",
            "__dp4a": "(a, b, c): c and the dot product of four bytes",
            "__funnelshift_l": "(low, high, n): both shifted left, the upper half",
            "__mul24": "(x, y): the product of the lower 24 bits",
            "__umulhi": "(x, y): the upper half of an unsigned product",
            "__float2half": "(x): rounded to half",
            "__half2float": "(x): half to float",
            "__float2int_rn": "(x): rounded to an integer",
            "__int_as_float": "(x): the bits of an integer as a float",
            "__float_as_int": "(x): the bits of a float as an integer",
            "__saturatef": "(x): clamped to 0 and 1",
        },
    ),
)


def _builtin(name: str, text: str, section: str, kind: Kind) -> Builtin:
    if not text.startswith("("):
        return Builtin(name, name, text, section, kind)
    arguments, _, means = text.partition(": ")
    return Builtin(name, f"{name}{arguments}", means, section, kind)


BUILTINS: dict[str, Builtin] = {
    name: _builtin(name, text, section, kind)
    for section, kind, names in _TABLE
    for name, text in names.items()
}
AXES = ("x", "y", "z", "w")
