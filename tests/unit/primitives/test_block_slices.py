"""A slice of an array that a block alone asks for, in its shared memory."""

from __future__ import annotations

from random import Random

import pytest

from optiml_magic.kernels.primitives.base import Kernel, NotLegal, Refused, kernels, where_legal
from optiml_magic.kernels.primitives.block_slices import held, slices
from optiml_magic.kernels.primitives.sized import block_sized
from optiml_magic.model.facts import ArrayFacts, Facts, LaunchFacts
from optiml_magic.source.program import parse_program
from tests.present import examples
from tests.rewriting.families.slices import slices as drawn_slices
from tests.rewriting.offers import Offer
from tests.rewriting.trying import Stand
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

SORT = """\
#pragma optiml launch k grid(rows) block(32)
__global__ void k(float* a, const int* at, float* out, int rows, int n) {
    float* own = a + blockIdx.x * n;
    int t = threadIdx.x;
    for (int phase = 0; phase < n; ++phase) {
        int i = 2 * t + (phase & 1);
        if (i + 1 < n && own[i] > own[i + 1]) {
            float kept = own[i];
            own[i] = own[i + 1];
            own[i + 1] = kept;
        }
        __syncthreads();
    }
    if (t == 0) out[blockIdx.x] = own[0];
}
"""
BITS = """\
#pragma optiml launch k grid(rows) block(32)
__global__ void k(float* a, const int* at, float* out, int rows, int n) {
    unsigned int i = threadIdx.x + blockIdx.x * blockDim.x;
    for (unsigned int k = 2; k <= 32; k <<= 1)
        for (unsigned int j = k >> 1; j > 0; j >>= 1) {
            unsigned int other = i ^ j;
            if (other > i && ((i & k) == 0 ? a[i] > a[other] : a[i] < a[other])) {
                float kept = a[i]; a[i] = a[other]; a[other] = kept;
            }
            __syncthreads();
        }
    out[i] = a[i / 32 * 32];
}
"""
MATRIX = """\
#pragma optiml launch k grid(rows, 2) block(8, 8)
__global__ void k(float* a, const int* at, float* out, int rows, int n) {
    const int x = threadIdx.x, y = threadIdx.y;
    const size_t first = ((size_t)blockIdx.y * gridDim.x + blockIdx.x) * 64;
    for (int k = 0; k < 8; ++k) {
        float by = a[first + y * 8 + k];
        __syncthreads();
        if (y != k) a[first + y * 8 + x] -= by * 0.125f * a[first + k * 8 + x];
        __syncthreads();
    }
}
"""
TURNS = """\
#pragma optiml launch k grid(rows) block(n)
__device__ int before(int t, int n) { return t > 0 ? t - 1 : n - 1; }
__global__ void k(float* a, const int* at, float* out, int rows, int n) {
    int t = threadIdx.x;
    float* from = a + blockIdx.x * 2 * n;
    float* to = from + n;
    int left = t > 0 ? t - 1 : n - 1;
    for (int step = 0; step < 5; ++step) {
        to[t] = 0.5f * (from[left] + from[t]);
        __syncthreads();
        float* other = from; from = to; to = other;
    }
    out[blockIdx.x * n + t] = from[t];
}
"""
FOUND = """\
#pragma optiml launch k grid(rows) block(32)
__global__ void k(float* a, const int* at, float* out, int rows, int n) {
    float* own = &out[blockIdx.x * 32];
    own[threadIdx.x] = a[blockIdx.x * 64 + threadIdx.x];
    __syncthreads();
    for (int j = 0; j < at[0] % 5 + 1; ++j) {
        if (at[threadIdx.x] > j) own[threadIdx.x] += 1.0f;
        __syncthreads();
        atomicAdd(&own[31 - threadIdx.x], 0.5f);
        __syncthreads();
    }
}
"""
INNER = """\
#pragma optiml launch k grid(rows) block(8, 4)
__global__ void k(float* a, const int* at, float* out, int rows, int n) {
    int x = threadIdx.x + 1, y = threadIdx.y + 1;
    float* patch = a + size_t(blockIdx.x) * 128 + 4;
    for (int s = 0; s < at[0] % 3 + 1; ++s)
        for (int colour = 0; colour < 2; ++colour) {
            if ((x + y) % 2 == colour)
                patch[y * 10 + x] = 0.25f * (patch[y * 10 + x - 1] + patch[y * 10 + x + 1]
                    + patch[y * 10 - 10 + x] + patch[y * 10 + 10 + x]);
            __syncthreads();
        }
}
"""
COUNTS = """\
#pragma optiml launch k grid(rows) block(32)
__global__ void k(float* a, const int* at, float* out, int rows, int n) {
    int first = blockIdx.x * 64, t = threadIdx.x;
    for (int i = t; i < 64; i += 32) out[first + i] = 0.0f;
    __syncthreads();
    for (int j = 0; j < n; ++j) {
        int place = at[(j + t) % 32] & 15;
        atomicAdd(&out[first + place + 3], 1.0f);
    }
}
"""
PAIRS = """\
struct Pair { float d, key; };
__device__ void order(Pair* a, Pair* b) { if (a->d > b->d) { Pair t = *a; *a = *b; *b = t; } }
#pragma optiml launch k grid(rows) block(16)
__global__ void k(float* a, const int* at, Pair* out, int rows, int n) {
    Pair* p = out + blockIdx.x * 32;
    for (int i = threadIdx.x; i < 32; i += 16) { p[i].d = a[blockIdx.x * 32 + i]; p[i].key = i; }
    __syncthreads();
    for (int step = 0; step < 32; ++step) {
        int i = 2 * threadIdx.x + step % 2;
        if (i < 31) order(p + i, p + i + 1);
        __syncthreads();
    }
}
"""


def kernel(text: str, rows: int = 3, n: int = 64, **more: str) -> Kernel:
    sizes = {"a": rows * 128, "at": rows * 32, "out": rows * 64}
    arrays = {
        name: ArrayFacts(
            more.get(name, name),
            "scratch" if f"scratch {name}" in text else "inout",
            "<f4",
            (count,),
            count * 4,
            256,
        )
        for name, count in sizes.items()
    }
    launch = LaunchFacts("k", 1, (rows, 1, 1), (32, 1, 1), arrays, {"rows": rows, "n": n})
    text_kernel = kernel_of(text, Facts((launch,), {}, 1e-5, 1e-8, "h200"))
    return where_legal(block_sized, text_kernel)


def end(text: str, made: Kernel | Refused, n: int = 64) -> str:
    arrays = {
        "a": Array("f4", ("rows * 128",), "positive"),
        "at": Array("i4", ("rows * 32",), "below n"),
        "out": Array("f4", ("rows * 64",), "zeros"),
    }
    return end_of(text, written(made), arrays, {"rows": 3, "n": n}, {"rows": 2, "n": 40})


def reasons(asked: Kernel) -> str:
    """Why a block does not hold its part of ``a``."""
    try:
        found = slices(asked)
    except NotLegal as problem:
        return problem.reason
    assert not any(one.array == "a" for one in found.found)
    return " ".join(one.reason for one in found.refused)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (SORT, "", ""),
        (SORT, "own[i] > own[i + 1]", "*(own + i) > own[i + 1]"),
        (SORT, "float* own", "if ((int)blockIdx.x >= rows) return; float* own"),
        (
            SORT,
            "float* own",
            "int row = blockIdx.x; if (row < 0 || row >= rows) return; float* own",
        ),
        (SORT, "own[i + 1] = kept;", "int j = i; own[++j] = kept;"),
        (BITS, "", ""),
        (BITS, "a[i / 32 * 32]", "(&a[i])[threadIdx.x % 2 ? -1 : 1]"),
        (MATRIX, "", ""),
        (MATRIX, "k < 8; ++k", "k < 6; k += 2"),
        (TURNS, "", ""),
        (TURNS, "t > 0 ? t - 1 : n - 1;\n    for", "before(t, n);\n    for"),
        (FOUND, "", ""),
        (COUNTS, "", ""),
        (COUNTS, "& 15", "% 4 + 8"),
        (COUNTS, "& 15", "& 7 | 8"),
        (COUNTS, "& 15;", ">> 1; place = min(max(place, 0), 9) * 2;"),
        (COUNTS, "& 15", "> 3 ? t : 5"),
        (INNER, "", ""),
        (FOUND, "if (", "if (at[1] < j) break; if ("),
    ],
)
def test_it_does_the_same(text: str, old: str, new: str, spread: bool) -> None:
    text = text.replace(old, new) if old else text
    made = held(kernel(text), spread=spread)
    if isinstance(made, Refused):
        assert spread
        assert made.reason == "a pointer leads into what is spread"
        return
    assert "__shared__ float" in written(made)
    assert end(text, made) in ("same", "narrowed")


def test_structures_that_are_plain_are_held() -> None:
    made = held(kernel(PAIRS))
    assert "__shared__ Pair out_own[32];" in written(made)
    arrays = {
        "a": Array("f4", ("rows * 128",), "positive"),
        "at": Array("i4", ("rows * 32",), "below n"),
        "out": Array("d:f4 key:f4", ("rows * 32",), "zeros"),
    }
    sizes = {"rows": 3, "n": 64}
    assert end_of(PAIRS, written(made), arrays, sizes, {"rows": 2, "n": 4}) in ("same", "narrowed")
    assert (
        "nothing is known"
        in slices(kernel(PAIRS.replace("key;", "key; Pair() {}"))).refused[0].reason
    )


def test_sizes_that_say_nothing_of_a_slice_stay_open() -> None:
    after = written(held(kernel(SORT)))
    assert "require n == 64" in after
    assert "rows ==" not in after
    assert "float* own = a_own;" in after.replace("float*own", "float* own")


def test_what_holds_of_all_blocks_is_asked_of_the_launch() -> None:
    guard = "int row = blockIdx.x; if (row * 2 + 2 > rows + n) return; float* own"
    made = held(kernel(text := SORT.replace("float* own", guard)))
    assert "require (rows - 1) * 2 <= rows + 62" in written(made)
    assert end(text, made) == "narrowed"


ROWS = """\
#pragma optiml launch k grid(rows) block(32)
__global__ void k(const float* a, const int* at, float* out, int rows, int n) {
    const float* row = a + blockIdx.x * 64 + threadIdx.x;
    float s = 0.0f;
    for (int j = 0; j < n; ++j) {
        s = s * 0.5f + row[j & 1];
        __syncthreads();
    }
    out[blockIdx.x * 32 + threadIdx.x] = s;
}
"""


def test_what_is_loaded_again_by_lanes_that_lie_apart_is_brought_once() -> None:
    wide = (
        ROWS.replace("* 64 +", "* 128 +")
        .replace("threadIdx.x;", "threadIdx.x * 4;")
        .replace("j & 1", "j & 3")
    )
    made = held(kernel(wide))
    assert "a_own[element] = a[" in written(made)
    assert "] = a_own[element]" not in written(made)
    assert end(wide, made) in ("same", "narrowed")
    assert "no block has a part" in refused(held(kernel(ROWS)))


def test_what_is_stored_first_is_not_brought() -> None:
    after = written(held(kernel(FOUND)))
    assert "out_own[element] = " not in after
    assert "= out_own[element];" in after


@pytest.mark.parametrize(
    ("text", "old", "new", "reason"),
    [
        (SORT, "i + 1 < n", "i < n", "blocks share parts of `a`"),
        (SORT, "blockIdx.x * n", "blockIdx.x * (n - 1)", "blocks share parts of `a`"),
        (SORT, "2 * t + (", "at[t] + (", "which of its elements a thread asks for"),
        (SORT, "int t", "if (blockIdx.x > at[0]) return; int t", "threads leave before"),
        (SORT, "own[0]", "__ldg(own)", "`__ldg` is given a part of it"),
        (SORT, "a + blockIdx", "a + 0; own += blockIdx", "leads beside the block's part"),
        (SORT, "a + blockIdx.x * n", "a - (-(int)blockIdx.x * n)", "leads beside the block's part"),
        (SORT, "own[0]", "own[0] + a[0]", "do not all lie by the place"),
        (SORT, "float* a", "volatile float* a", "is volatile"),
        (SORT, "float kept = own[i]", "float4* q = (float4*)own; float kept = own[i]", "is cast"),
        (SORT, "phase < n", "phase < n * 100000", "too many rounds"),
        (MATRIX, "gridDim.x + blockIdx.x", "2 + blockIdx.x", "blocks share parts of `a`"),
        (TURNS, "step < 5", "step < at[0]", "where a pointer leads is not followed"),
        (TURNS, "a + blockIdx", "a - n + n + blockIdx", "leads beside the block's part"),
    ],
)
def test_what_is_not_certain_is_refused(text: str, old: str, new: str, reason: str) -> None:
    asked = kernel(text.replace(old, new).replace("volatile float* own", "float* own"))
    assert reason in reasons(asked)


@pytest.mark.parametrize(
    "place", ["at[t]", "at[t] % 7 - 3", "(at[t] & 31) * 3", "(at[t] & 63) + 1"]
)
def test_places_that_may_be_those_of_other_blocks_are_refused(place: str) -> None:
    found = slices(kernel(COUNTS.replace("at[(j + t) % 32] & 15", place)))
    assert not any(one.array == "out" for one in found.found)


def test_scratch_is_taken_back_where_the_launch_runs_again() -> None:
    scratch = "#pragma optiml scratch a f4[rows * n]\n" + SORT
    again = scratch.replace("block(32)", "block(32) repeat(2)")
    backs = ["= a_own[element];" in written(held(kernel(one))) for one in (SORT, scratch, again)]
    assert backs == [True, False, True]


def test_an_array_of_two_names_is_refused() -> None:
    assert "has another name" in reasons(kernel(SORT, out="a"))
    assert "no block has a part" in refused(held(kernel(SORT, out="a")))


@pytest.mark.parametrize("seed", range(examples(6, 600)))
def test_random_parts_of_blocks_are_held(seed: int) -> None:
    stand = Stand(one := drawn_slices(Random(seed)))
    (found,) = kernels(parse_program(one.text), stand.facts(one.text))
    for spread in (False, True):
        made = held(found, spread=spread)
        if isinstance(made, Kernel):
            offer = Offer("hold_slice", "", made.program.text, rounds=False)
            end = stand.applied(offer, one.text)
            assert end.sound, f"{end.end}: {end.detail}\n{one}\n{end.after}"
