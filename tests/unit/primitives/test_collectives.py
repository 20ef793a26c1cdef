"""Groups of threads and what libraries combine over them, by built-in functions."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.collectives import collectives
from tests.present import sampled

from .running import same
from .shapes import applied, kernel, refused

GROUPS = """\
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
"""
CUB = """\
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cuda/functional>
"""
TEXT = """\
struct Most { __device__ float operator()(float a, float b) const { return fabsf(a) > fabsf(b) ? a : b; } };
struct Larger {
    template <class T, class U> __device__ typename std::common_type<T, U>::type operator()(T&& t, U&& u) const { return t > u ? t : u; }
};
struct Added { __device__ float operator()(const float& a, const float& b) const { return a + b; } };
struct Whole { __device__ int operator()(int a, int b) const { return min(a, b); } };
struct First { __device__ float operator()(float a, float b) const { return a > b ? a : a; } };
#pragma optiml launch k grid(m) block(64)
__global__ void k(const float* x, float* y, int n, int m) {
    %s
}
"""
SHAPES = {"x": ("m", "n"), "y": ("m", "4")}
SUM = "float v = 0; for (int c = threadIdx.x; c < n; c += 64) v += x[blockIdx.x * n + c];"
BODIES = [
    f"using Reduce = cub::BlockReduce<float, 64>; __shared__ typename Reduce::TempStorage t; {SUM} float all = Reduce(t).Sum(v); if (threadIdx.x == 0) y[blockIdx.x * 4] = all;",
    f"typedef cub::BlockReduce<float, 64> Reduce; __shared__ Reduce::TempStorage t; {SUM} float u = Reduce(t).Reduce(v, cuda::maximum<>{{}}); __syncthreads(); float w = Reduce(t).Sum(v); if (!threadIdx.x) {{ y[blockIdx.x * 4] = u; y[blockIdx.x * 4 + 1] = w; }}",
    "__shared__ cub::BlockReduce<int, 64>::TempStorage t; int v = threadIdx.x * 7 % 5; int w = cub::BlockReduce<int, 64>(t).Reduce(v, cuda::minimum<>()); if (threadIdx.x == 0) y[blockIdx.x * 4] = w + 1;",
    f"using W = cub::WarpReduce<float>; __shared__ W::TempStorage t[2]; {SUM} v = W(t[threadIdx.x / 32]).Sum(v); if (threadIdx.x % 32 == 0) y[blockIdx.x * 4 + threadIdx.x / 32] = v;",
    f"auto block = cg::this_thread_block(); auto tile = cg::tiled_partition<32>(block); {SUM} v = cg::reduce(tile, v, cg::plus<float>()); block.sync(); if (tile.thread_rank() == 0) y[block.group_index().x * 4 + tile.meta_group_rank()] = v + tile.size() + block.size();",
    f"cg::thread_block b = cg::this_thread_block(); cg::thread_block_tile<16> t = cg::tiled_partition<16>(b); {SUM} for (int o = t.size() / 2; o > 0; o /= 2) v += t.shfl_down(v, o); t.sync(); cg::sync(b); v = t.shfl(v, 0); if (t.thread_rank() == 3) y[blockIdx.x * 4 + b.thread_rank() / 16] = v + t.meta_group_size();",
    f"cg::thread_block b = cg::this_thread_block(); {SUM} cg::this_thread_block().sync(); float w = cg::reduce(cg::tiled_partition<8>(b), v, cg::greater<float>()); if (b.thread_index().x < 4) y[blockIdx.x * 4 + b.thread_index().x] = w;",
    f"using R = cub::BlockReduce<float, 64>; __shared__ R::TempStorage t; {SUM} float u = R(t).Reduce(v, Larger{{}}, blockDim.x); __syncthreads(); float w = R(t).Reduce(v, Added()); if (threadIdx.x == 0) {{ y[blockIdx.x * 4] = u; y[blockIdx.x * 4 + 1] = w; }}",
    "using R = cub::BlockReduce<long long, 64>; __shared__ R::TempStorage t; long long v = R(t).Sum(1 << 29); if (threadIdx.x == 0) y[blockIdx.x * 4] = v;",
    "using R = cub::BlockReduce<int, 64>; __shared__ R::TempStorage t; float v = R(t).Sum(threadIdx.x * 0.25f); if (threadIdx.x == 0) y[blockIdx.x * 4] = v;",
    f"auto t = cg::tiled_partition<16>(cg::this_thread_block()); {SUM} if (t.meta_group_rank() == 1) {{ v = cg::reduce(t, v, cg::plus<float>()); v += t.shfl(v, 3); t.sync(); y[blockIdx.x * 4] = v; }}",
]  # fmt: skip


def written(body: str) -> str:
    """The kernel, below the headers that it needs: those of CUB take seconds to compile."""
    return (CUB if "cub::" in body else GROUPS) + TEXT % body


@pytest.mark.parametrize("body", sampled(BODIES, 4))
def test_they_are_built_in_functions(body: str) -> None:
    text = written(body)
    made = collectives(kernel(text))
    left = applied(made).program.text.split("__global__")[1]
    assert "cub::" not in left
    assert "cg::" not in left
    same(text, made, SHAPES, {"n": 131, "m": 3}, rounds=True)


@pytest.mark.parametrize(
    "body",
    [
        "using R = cub::BlockReduce<float, 64>; __shared__ R::TempStorage t; y[0] = R(t).Reduce(x[threadIdx.x], Most());",
        "using R = cub::BlockReduce<float, 64>; __shared__ R::TempStorage t; y[0] = R(t).Reduce(x[threadIdx.x], Whole());",
        "using R = cub::BlockReduce<float, 64>; __shared__ R::TempStorage t; y[0] = R(t).Reduce(x[threadIdx.x], First());",
        "using R = cub::BlockReduce<float, 64>; __shared__ R::TempStorage t; y[0] = R(t).Reduce(x[threadIdx.x], Larger(), n);",
        "auto t = cg::tiled_partition<32>(cg::this_thread_block()); y[0] = cg::reduce(t, x[threadIdx.x], Most());",
        "auto w = cg::tiled_partition<32>(cg::this_thread_block()); auto t = cg::tiled_partition<8>(w); y[0] = t.meta_group_rank();",
        "using S = cub::BlockScan<float, 64>; __shared__ S::TempStorage t; float v = x[threadIdx.x]; S(t).InclusiveSum(v, v); y[0] = v;",
        "using R = cub::BlockReduce<float, 64>; __shared__ R::TempStorage t; y[0] = R(t).Sum(x[threadIdx.x], n);",
        "auto b = cg::this_thread_block(); auto t = cg::tiled_partition<32>(b); y[0] = cg::inclusive_scan(t, 1);",
        "auto g = cg::this_grid(); g.sync(); y[0] = 1;",
        "auto b = cg::this_thread_block(); auto t = cg::tiled_partition<64>(b); y[0] = t.thread_rank();",
    ],
)
def test_what_is_not_followed(body: str) -> None:
    assert refused(collectives(kernel(written(body))))[0]


def test_the_order_of_additions_is_another() -> None:
    made = applied(collectives(kernel(written(BODIES[0]))))
    assert made.arithmetic == ("the order of additions",)
    assert applied(collectives(kernel(written(BODIES[2])))).arithmetic == ()
