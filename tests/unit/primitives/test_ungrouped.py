"""Cooperative groups as the barriers and shuffles that they stand for."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.ungrouped import all_ungrouped, ungrouped
from optiml_magic.source.program import parse_program
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

TEXT = """\
#include <cooperative_groups.h>
namespace cg = cooperative_groups;
#pragma optiml launch k grid(cdiv(n, 64)) block(64)
__global__ void k(const float* x, float* out, int n) {
    cg::thread_block block = cg::this_thread_block();
    auto warp = cg::tiled_partition<32>(block);
    __shared__ float part[2];
    int i = block.group_index().x * block.size() + block.thread_rank();
    float v = i < n ? x[i] : 0.0f;
    for (int o = warp.size() / 2; o > 0; o /= 2) v += warp.shfl_down(v, o);
    float first = warp.shfl(v, warp.num_threads() - 32);
    if (warp.thread_rank() == 0) part[warp.meta_group_rank()] = first;
    cg::sync(block);
    if (warp.any(v > 100.0f)) warp.sync();
    block.sync();
    if (block.thread_rank() == 0) out[blockIdx.x] = part[0] + part[1];
}
"""
ARRAYS = {"x": Array("f4", ("n",)), "out": Array("f4", ("cdiv(n, 64)",), "zeros")}


def test_groups_are_barriers_and_shuffles() -> None:
    after = written(ungrouped(kernel_of(TEXT)))
    assert "cg::" not in after.split("__global__")[1]
    assert "int i = blockIdx.x * (blockDim.x) + (threadIdx.x);" in after
    assert "__shfl_down_sync(0xffffffff, v, o)" in after
    assert "__shfl_sync(0xffffffff, v, 32 - 32)" in after
    assert after.count("__syncthreads();") == after.count("__syncwarp();") + 1
    assert end_of(TEXT, after, ARRAYS, {"n": 70}, {"n": 3}) == "same"
    program = parse_program(after)
    assert all_ungrouped(program) is program


def test_the_rank_in_a_block_of_two_axes() -> None:
    text = TEXT.replace("block(64)", "block(16, 4)")
    after = written(ungrouped(kernel_of(text)))
    assert "threadIdx.y) * blockDim.x + threadIdx.x)" in after
    assert end_of(text, after, ARRAYS, {"n": 70}, {"n": 3}) == "same"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("tiled_partition<32>", "tiled_partition<16>"),
        ("cg::sync(block);", "cg::wait(block);"),
        ("block.sync();", "{ auto & again = block; again.sync(); }"),
    ],
)
def test_groups_that_are_asked_for_more_stay(old: str, new: str) -> None:
    after = written(ungrouped(kernel_of(TEXT.replace(old, new))))
    assert "cg::thread_block block = cg::this_thread_block();" in after


def test_a_kernel_without_groups() -> None:
    text = "#pragma optiml launch k grid(1) block(32)\n__global__ void k(float* x) { x[0] = 1; }\n"
    assert refused(ungrouped(kernel_of(text))) == "it declares no cooperative group for its block"
