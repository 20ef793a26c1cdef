"""Blocks whose warps combine by shuffles: other widths where that is certainly the same."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.base import NotLegal
from optiml_magic.kernels.primitives.cooperating import cooperation
from optiml_magic.kernels.primitives.cutting import cut, tuned
from optiml_magic.kernels.primitives.shaped import planar
from optiml_magic.proposers.rewrites.block_size import BlockSize
from optiml_magic.proposers.rewrites.kernel_rule import Site
from optiml_magic.testing.kernels import known_task
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

ROWS = """\
#pragma optiml launch rows grid(h) block(128)
__global__ void rows(const float* a, float* o, int h, int w) {
    __shared__ float part[4];
    const int t = threadIdx.x, lane = t % 32, warp = t / 32;
    float sum = 0.0f;
    for (int i = t; i < w; i += 128) sum += a[blockIdx.x * w + i];
    for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = lane < 4 ? part[lane] : 0.0f;
        for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);
    }
    if (t == 0) o[blockIdx.x] = sum;
}
"""
#: The greatest by a function for the first warp, the sum by a butterfly for all.
SPREAD = """\
#define ALL 0xffffffffu
constexpr int WARP = 32;
template <class T> __device__ T warp_max(T v) {
    for (int d = WARP / 2; d > 0; d >>= 1) v = max(v, __shfl_down_sync(ALL, v, d));
    return v;
}
__device__ float warp_sum(float v) {
    #pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        float other = __shfl_xor_sync(ALL, v, d);
        v = v + other;
    }
    return v;
}
#pragma optiml launch spread grid(h) block(64)
__global__ void spread(const float* a, float* o, int h, int w) {
    __shared__ float part[32];
    __shared__ float least[64 / WARP];
    __shared__ float top;
    const unsigned lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int warps = (blockDim.x + warpSize - 1) / warpSize;
    float m = -INFINITY, low = 1e30f;
    for (int i = threadIdx.x; i < w; i += blockDim.x) {
        m = fmaxf(m, a[blockIdx.x * w + i]);
        low = fminf(low, a[blockIdx.x * w + i]);
    }
    m = warp_max<float>(m);
    low = fminf(low, __shfl_xor_sync(ALL, low, 16));
    low = fminf(low, __shfl_xor_sync(ALL, low, 8));
    low = fminf(low, __shfl_xor_sync(ALL, low, 4));
    low = fminf(low, __shfl_xor_sync(ALL, low, 2));
    low = fminf(low, __shfl_xor_sync(ALL, low, 1));
    if (!lane) {
        part[warp] = m;
        least[warp] = low;
    }
    __syncthreads();
    if (threadIdx.x < WARP) {
        float v = lane < warps ? part[lane] : -INFINITY;
        v = warp_max(v);
        if (lane == 0) top = v;
    }
    low = lane < 2 ? least[lane] : INFINITY;
    for (int d = 16; d; d /= 2) low = fminf(low, __shfl_xor_sync(ALL, low, d, 32));
    __syncthreads();
    float s = 0;
    for (int i = threadIdx.x; i < w; i += blockDim.x) s += a[blockIdx.x * w + i] - top;
    s = warp_sum(s);
    if (lane == 0) part[warp] = s;
    __syncthreads();
    float all = 0;
    if (lane < blockDim.x / 32) all = part[lane];
    all = warp_sum(all);
    for (int i = threadIdx.x; i < w; i += blockDim.x)
        o[blockIdx.x * w + i] = a[blockIdx.x * w + i] - top + all * low;
}
"""
#: Each warp adds its own, after what the first thread adds for the whole block.
ADDED = """\
#pragma optiml init(o) = 0
#pragma optiml launch added grid(2) block(64)
__global__ void added(const int* a, int* o, int n) {
    __shared__ int part[2];
    int s = 0;
    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += 64 * gridDim.x) s += a[i];
    s = __reduce_add_sync(~0u, s);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x % 32 == 0) atomicAdd(o + 1, s);
    if (threadIdx.x >= 32) return;
    s = threadIdx.x < 2 ? part[threadIdx.x] : 0;
    s = __reduce_add_sync(~0u, s);
    if (threadIdx.x == 0) atomicAdd(o, s);
}
"""
PLANE = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}
LINE = {"a": Array("i4", ("n",)), "o": Array("i4", ("2",), "zeros")}


def test_what_stands_for_the_warps_follows_them() -> None:
    after = written(tuned(kernel_of(ROWS), {"x": (64, 256)}))
    assert "part[(BLOCK / 32)]" in after
    assert "lane < blockDim.x / 32 ? part[lane] : 0.0f" in after
    assert cooperation(kernel_of(ROWS)).rounds
    other = kernel_of(after).program.with_values({"BLOCK": 256}).text
    arrays = {**PLANE, "o": Array("f4", ("h",), "zeros")}
    assert end_of(ROWS, other, arrays, {"h": 3, "w": 300}, {"h": 2, "w": 7}, rounds=True) == "same"


def test_several_reductions_whose_results_all_threads_read() -> None:
    after = written(cut(kernel_of(SPREAD), {"x": 256}))
    end = end_of(SPREAD, after, PLANE, {"h": 2, "w": 300}, {"h": 2, "w": 7}, rounds=True)
    assert end == "same"


def test_warps_that_share_a_sum() -> None:
    after = written(cut(kernel_of(ADDED), {"x": 128}))
    assert end_of(ADDED, after, LINE, {"n": 500}, {"n": 5}) == "same"
    floats = ADDED.replace("int* ", "float* ").replace("int part", "float part")
    floats = floats.replace("int s", "float s")
    with pytest.raises(NotLegal, match="not all of it"):  # floats are not reduced so
        cooperation(kernel_of(floats))


def test_what_blocks_share_is_not_added_up_in_one_of_them() -> None:
    begun = "int part[2], few[1];\n    if (threadIdx.x == 0) few[0] = 0;\n    __syncthreads();"
    text = ADDED.replace("int part[2];", begun).replace("o + 1", "&few[0]")
    with pytest.raises(NotLegal, match="added up in one of them"):
        cooperation(kernel_of(text))


def test_a_known_kernel_gets_other_widths() -> None:
    kernel = kernel_of(known_task("row_sum").kernel.read_text())
    (site,) = BlockSize().sites(kernel)
    assert isinstance(site, Site)
    assert {"BLOCK": 256} in list(site.points)
    assert "lanes of a warp" in refused(planar(kernel))


TREE = "for (int d = 16; d > 0; d /= 2) sum += __shfl_down_sync(0xffffffff, sum, d);"


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("d = 16", "d = 8", "its lanes exchange"),
        ("d > 0", "d > 1", "its lanes exchange"),
        ("0xffffffff,", "0xffff,", "its lanes exchange"),
        ("0xffffffff,", "__activemask(),", "its lanes exchange"),
        ("sum, d)", "sum, d, 16)", "its lanes exchange"),
        ("sum, d)", "sum + 1, d)", "its lanes exchange"),
        ("shfl_down", "shfl_up", "its lanes exchange"),
        ("sum += __", "sum -= __", "its lanes exchange"),
        (f"    {TREE}\n    if", "    sum += __shfl_down_sync(0xffffffff, sum, 16);\n    if", "not followed"),
        (f"    {TREE}\n    if", f"    {TREE}{TREE}\n    if", "is not all of it"),
        (f"    {TREE}\n    if", f"    if (w > 3) {TREE}\n    if", "not followed"),
        (f"    {TREE}\n    if", "    if", "not followed"),
        (TREE + "\n    if", TREE.replace("sum += __shfl_down_sync(0xffffffff, sum, d)",
            "sum = fmaxf(sum, __shfl_down_sync(0xffffffff, sum, d))") + "\n    if", "not all of it"),
        ("lane == 0", "lane == 1", "differs from thread to thread"),
        ("lane == 0", "lane < 1", "differs from thread to thread"),
        ("part[warp] = sum", "part[lane] = sum", "first lanes"),
        ("part[warp] = sum", "part[warp] = sum + 1", "first lanes"),
        ("part[warp] = sum;", "o[warp] = sum;", "first lanes"),
        ("float part[4]", "float part[2]", "has not an element a warp"),
        ("float part[4]", "double part[4]", "rounded on the way"),
        ("lane < 4", "lane < 8", "where in its block it stands|differs"),
        ("lane < 4", "lane <= 4", "differs"),
        ("lane < 4 ? part[lane] : 0.0f", "part[lane]", "part"),
        (": 0.0f", ": 1.0f", "is not certain to add nothing"),
        ("? part[lane]", "? part[lane + 0]", "differs"),
        ("warp == 0", "warp < 2", "differs from thread to thread"),
        ("warp == 0", "w > 3", "not followed|differs|not all"),
        ("t == 0", "lane == 0", "first lanes"),
        ("= sum;\n}", "= sum / blockDim.x;\n}", "where in its block it stands"),
        ("    if (t == 0) o", "    o", "not followed"),
        ("    }\n", "    __syncthreads();\n    }\n", "what one warp does"),
        ("sum = 0.0f", "sum = 1.0f", "does not begin with nothing"),
        ("    if (lane", "    sum = sum * 2;\n    if (lane", "`sum` differs from thread to thread"),
    ],
)  # fmt: skip
def test_refused(old: str, new: str, reason: str) -> None:
    assert old in ROWS
    with pytest.raises(NotLegal, match=reason):
        cooperation(kernel_of(ROWS.replace(old, new)))


@pytest.mark.parametrize(
    ("nothing", "begun", "fits"),
    [
        ("-INFINITY", "-INFINITY", True),
        ("-INFINITY", "-1e30f", True),
        ("-1e30f", "-INFINITY", False),
        ("-FLT_MAX", "-FLT_MAX", True),
        ("-FLT_MAX", "-1.0f", False),
        ("-INFINITY", "a[0]", False),  # which may be no number
        ("0.0f", "-0.0f", False),
    ],
)
def test_what_adds_nothing_to_the_greatest(nothing: str, begun: str, *, fits: bool) -> None:
    text = ROWS.replace("sum = 0.0f", f"sum = {begun}").replace(": 0.0f", f": {nothing}")
    text = text.replace("sum += a[blockIdx.x * w + i]", "sum = fmaxf(sum, a[blockIdx.x * w + i])")
    call = "__shfl_down_sync(0xffffffff, sum, d)"
    text = text.replace(f"sum += {call}", f"sum = fmaxf(sum, {call})")
    if fits:
        assert not cooperation(kernel_of(text)).rounds
    else:
        with pytest.raises(NotLegal, match="add nothing"):
            cooperation(kernel_of(text))


def test_a_block_of_one_warp_is_left_alone() -> None:
    one = ROWS.replace("128", "32").replace("part[4]", "part[32]").replace("lane < 4", "lane < 1")
    with pytest.raises(NotLegal, match="its block is one warp"):
        cooperation(kernel_of(one))


def test_fewer_elements_bound_the_threads() -> None:
    assert cooperation(kernel_of(ROWS.replace("part[4]", "part[8]"))).most == 256
