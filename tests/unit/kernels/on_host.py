"""Random kernels as plain C++ on this machine, where the compiler's own checks note every access.

The emulator sees what an optimising compiler left of a kernel and takes a second for each. Here
nothing is optimised, so that every load is there as well, and a kernel takes a hundredth of that.
The calls that ``-fsanitize=kernel-address`` puts before each access are ours.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from optiml_magic.model.counters import Access
from optiml_magic.source.program import parse_program
from optiml_magic.testing.touches import Thread, Touch
from optiml_magic.testing.traces import LaunchTrace

from .random_numbers import ELEMENTS, PRELUDE, SCALARS

COMPILER = shutil.which("g++") if shutil.which("addr2line") else None
_MODES: tuple[Access, ...] = ("load", "store", "atomic")
_GAP = 1 << 16  # bytes around each array, in which nothing may be touched
_ARRAYS = {"in": "<f4", "out": "<f4", "cnt": "<i4", "tab": "<i4", "bytes": "|u1"}
_SCALARS = {"n": np.int32, "m": np.int32, "u": np.uint32, "z": np.uint64, "base": np.int32}
_FLAGS = (
    "-O0", "-g", "-no-pie", "-w", "-fno-exceptions", "-fsanitize=kernel-address",
    "--param=asan-instrumentation-with-call-threshold=0", "--param=asan-stack=0",
    "--param=asan-globals=0", "-fsanitize=signed-integer-overflow,integer-divide-by-zero,shift",
    "-fsanitize-undefined-trap-on-error",
)  # fmt: skip

_HEAD = """\
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#define __global__
#define __device__ static
#define __forceinline__ inline
#define HIDDEN __attribute__((no_sanitize("kernel-address"), no_sanitize("undefined")))
struct Axes { unsigned x, y, z; };
static Axes threadIdx, blockIdx, blockDim, gridDim;
static uint64_t* notes;
static size_t used;
static uint32_t thread_of_grid;
static const size_t MOST = 1 << 19;
static char* arena;
static size_t reach;
HIDDEN static void note(const void* place, unsigned width, unsigned mode, void* from) {
    const char* at = (const char*)place;
    if (at < arena || at >= arena + reach) return;
    if (used >= MOST) exit(3);
    notes[used++] = (uint64_t)(at - arena) << 32 | thread_of_grid << 8 | mode << 6 | width;
    notes[used++] = (uint64_t)from;
}
#define HERE __builtin_return_address(0)
#define NOTED(n) \\
    extern "C" HIDDEN void __asan_load##n##_noabort(void* at) { note(at, n, 0, HERE); } \\
    extern "C" HIDDEN void __asan_store##n##_noabort(void* at) { note(at, n, 1, HERE); }
NOTED(1) NOTED(2) NOTED(4) NOTED(8) NOTED(16)
extern "C" HIDDEN void __asan_loadN_noabort(void* at, long n) { note(at, n, 0, HERE); }
extern "C" HIDDEN void __asan_storeN_noabort(void* at, long n) { note(at, n, 1, HERE); }
extern "C" void __asan_handle_no_return() {}
template <class A, class B> HIDDEN static auto min(A a, B b) { return a < b ? a : b; }
template <class A, class B> HIDDEN static auto max(A a, B b) { return a > b ? a : b; }
HIDDEN __attribute__((noinline)) static int atomicAdd(int* at, int by) {
    note(at, 4, 2, HERE);
    return *at += by;
}
"""
_MAIN = """\
typedef void (*Kernel)(const float*, float*, int*, const int*, const unsigned char*, int, int,
                       unsigned, size_t, int);
static const Kernel kernels[] = {%(names)s};
static const Axes grids[] = {%(grids)s}, blocks[] = {%(blocks)s};
HIDDEN int main(int, char** given) {
    const size_t gap = %(gap)d, whole = %(elements)d, sizes[] = {4, 4, 4, 4, 1};
    notes = (uint64_t*)malloc(8 * MOST);
    char* at[5];
    reach = gap;
    for (int k = 0; k < 5; ++k) reach += sizes[k] * whole + gap;
    char* mine = (char*)calloc(reach, 1);
    size_t from = gap;
    FILE* file = fopen(given[2], "rb");
    for (int k = 0; k < 5; ++k) {
        at[k] = mine + from;
        if (fread(at[k], sizes[k], whole, file) != whole) return 2;
        from += sizes[k] * whole + gap;
    }
    arena = mine;
    int which = atoi(given[1]);
    gridDim = grids[which], blockDim = blocks[which];
    unsigned per_block = blockDim.x * blockDim.y * blockDim.z;
    unsigned all = gridDim.x * gridDim.y * gridDim.z * per_block;
    for (thread_of_grid = 0; thread_of_grid < all; ++thread_of_grid) {
        unsigned b = thread_of_grid / per_block, t = thread_of_grid %% per_block;
        blockIdx = {b %% gridDim.x, b / gridDim.x %% gridDim.y, b / gridDim.x / gridDim.y};
        threadIdx = {t %% blockDim.x, t / blockDim.x %% blockDim.y, t / blockDim.x / blockDim.y};
        kernels[which]((float*)at[0], (float*)at[1], (int*)at[2], (int*)at[3],
                       (unsigned char*)at[4], %(scalars)s);
    }
    fwrite(notes, 8, used, stdout);
    return 0;
}
"""


def values() -> dict[str, object]:
    """What every random kernel is given."""
    rng = np.random.default_rng(3)
    arrays = {
        "in": rng.uniform(0.5, 1.5, ELEMENTS).astype("<f4"),
        "out": np.zeros(ELEMENTS, "<f4"),
        "cnt": np.zeros(ELEMENTS, "<i4"),
        "tab": rng.integers(-20, 50, ELEMENTS).astype("<i4"),
        "bytes": rng.integers(0, 10, ELEMENTS).astype("|u1"),
    }
    return {**arrays, **{name: kind(SCALARS[name]) for name, kind in _SCALARS.items()}}


def traced(kernels: Sequence[str], folder: Path) -> list[LaunchTrace | None]:
    """What each thread of these kernels touches; None for one that does what C does not define."""
    text = PRELUDE + "\n" + "\n".join(kernels)
    launches = parse_program(text).launches
    names = [str(launch.kernel) for launch in launches]
    dims = [[(*(int(str(e)) for e in axes), 1, 1)[:3] for axes in (x.grid, x.block)]
            for x in launches]  # fmt: skip
    main = _MAIN % {
        "names": ", ".join(names),
        "grids": ", ".join("{%d, %d, %d}" % grid for grid, _ in dims),  # noqa: UP031
        "blocks": ", ".join("{%d, %d, %d}" % block for _, block in dims),  # noqa: UP031
        "gap": _GAP,
        "elements": ELEMENTS,
        "scalars": ", ".join(str(SCALARS[name]) for name in _SCALARS),
    }
    source, program, given = (folder / name for name in ("k.cpp", "k", "arrays.bin"))
    source.write_text(_HEAD + "#line 1\n" + text.replace("#pragma optiml", "//") + main)
    held = values()
    arrays = {name: np.asarray(held[name]) for name in _ARRAYS}
    given.write_bytes(b"".join(array.tobytes() for array in arrays.values()))
    assert COMPILER is not None
    made = [COMPILER, *_FLAGS, str(source), "-o", str(program)]
    if subprocess.run(made, capture_output=True, check=False).returncode:
        if len(kernels) == 1:
            return [None]
        return [one for text in kernels for one in traced([text], folder)]
    found: list[LaunchTrace | None] = []
    for at, (name, (grid, block)) in enumerate(zip(names, dims, strict=True)):
        touches = _touches([str(program), str(at), str(given)], grid, block)
        found.append(None if touches is None else LaunchTrace(
            kernel=name, template=(), grid=grid, block=block, touches=touches, shared={},
            accesses={}, buffers={array: array for array in _ARRAYS}, scalars=SCALARS,
            arrays=arrays, variables={}, text=text,
        ))  # fmt: skip
    return found


def _touches(
    command: list[str], grid: tuple[int, int, int], block: tuple[int, int, int]
) -> dict[Thread, frozenset[Touch]] | None:
    try:
        done = subprocess.run(command, capture_output=True, timeout=10, check=False)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    notes = np.frombuffer(done.stdout, "<u8").reshape(-1, 2)
    rows, places = np.unique(notes, axis=0), np.unique(notes[:, 1]).tolist()
    lines = dict(zip(places, _lines(command[0], places), strict=True))
    per_block = int(np.prod(block))
    found: dict[Thread, set[Touch]] = {
        (b, t): set() for b in range(int(np.prod(grid))) for t in range(per_block)
    }
    starts, at = {}, _GAP
    for name, dtype in _ARRAYS.items():
        starts[name] = at, at + ELEMENTS * np.dtype(dtype).itemsize
        at = starts[name][1] + _GAP
    for word, place in rows.tolist():
        address, thread, mode = word >> 32, word >> 8 & 0xFFFFFF, word >> 6 & 3
        inside = [name for name, (low, high) in starts.items() if low <= address < high]
        if not inside:
            return None
        access: Access = _MODES[mode]
        offset = address - starts[inside[0]][0]
        touch = Touch(inside[0], access, offset, word & 63, lines[place])
        found[divmod(thread, per_block)].add(touch)
    return {thread: frozenset(those) for thread, those in found.items()}


def _lines(program: str, places: Sequence[int]) -> list[int]:
    """The lines of the kernels' text that the calls stand on which return to these places."""
    given = "".join(f"{place - 1:#x}\n" for place in places)
    told = subprocess.run(
        ["addr2line", "-e", program], input=given, capture_output=True, text=True, check=True
    )
    numbers = [line.rpartition(":")[2].split()[0] for line in told.stdout.splitlines()]
    return [int(number) if number.isdigit() else 0 for number in numbers]
