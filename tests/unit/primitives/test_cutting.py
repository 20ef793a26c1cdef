"""Blocks of other extents: any where guards keep what is beyond, divisors elsewhere."""

from __future__ import annotations

import pytest

from optiml_magic.kernels.primitives.cutting import cut, tuned
from tests.present import SOAK
from tests.rewriting.writing import Array

from .alike import end_of, kernel_of, refused, written

SAXPY = """\
#pragma optiml launch saxpy grid(cdiv(n, 64)) block(64)
__global__ void saxpy(float k, const float* x, float* o, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) o[i] = k * x[i];
}
"""
STRIDE = SAXPY.replace("if (i < n)", "for (; i < n; i += gridDim.x * 64)").replace(
    "cdiv(n, 64)", "2"
)
ROWS = """\
#pragma optiml launch rows grid(h) block(1)
__global__ void rows(const float* a, float* o, int h, int w) {
    for (int j = 0; j < w; ++j) o[blockIdx.x * w + j] = 2.0f * a[blockIdx.x * w + j];
}
"""
LINE = {"x": Array("f4", ("n",)), "o": Array("f4", ("n",), "zeros")}
PLANE = {"a": Array("f4", ("h", "w")), "o": Array("f4", ("h", "w"), "zeros")}


@pytest.mark.parametrize(
    ("text", "grid"),
    [
        (SAXPY, "grid(cdiv(n, 256)) block(256)"),
        (SAXPY.replace("int i", "size_t i").replace("blockDim.x", "64"), "grid(cdiv(n, 256))"),
        (SAXPY.replace("cdiv(n, 64)", "(n + 63) / 64"), "grid(cdiv(n, 256))"),
    ],
)
def test_guarded_blocks_take_any_extent(text: str, grid: str) -> None:
    after = written(cut(kernel_of(text), {"x": 256}))
    assert grid in after
    assert "64" not in after
    if SOAK or text is SAXPY:
        assert end_of(text, after, LINE, {"n": 300}, {"n": 64}, k=0.5) == "same"


@pytest.mark.parametrize("text", [STRIDE, STRIDE.replace("gridDim.x * 64", "64 * gridDim.x")])
def test_a_stride_of_the_grid_stays(text: str) -> None:
    after = written(tuned(kernel_of(text), {"x": (16, 32)}))
    assert "tune BLOCK in {16, 32, 64} = 64" in after
    assert "i += blockDim.x * gridDim.x" in after
    after = written(cut(kernel_of(text), {"x": 16}))
    assert "grid(2 * 4) block(16)" in after
    if not SOAK and text is not STRIDE:
        return
    assert end_of(text, after, LINE, {"n": 300}, {"n": 5}, k=0.5) == "same"


def test_a_thread_a_block_becomes_many() -> None:
    after = written(cut(kernel_of(ROWS), {"x": 32}))
    assert "grid(cdiv(h, 32)) block(32)" in after
    assert "if (blockIdx.x * blockDim.x + threadIdx.x >= h) return;" in after
    assert end_of(ROWS, after, PLANE, {"h": 37, "w": 5}, {"h": 2, "w": 3}) == "same"


@pytest.mark.parametrize("blocks", ["37", "9 * 4 + 1"])
def test_a_number_of_such_blocks_is_compared_with_as_well(blocks: str) -> None:
    text = ROWS.replace("grid(h)", f"grid({blocks})")
    after = written(cut(kernel_of(text), {"x": 32}))
    assert "if (blockIdx.x * blockDim.x + threadIdx.x >= 37) return;" in after
    assert end_of(text, after, PLANE, {"h": 37, "w": 5}, {"h": 37, "w": 3}) == "same"


def test_two_axes_share_a_condition() -> None:
    text = """\
#pragma optiml launch s grid(cdiv(w, 16), cdiv(h, 16)) block(16, 16)
__global__ void s(const float* a, float* o, int h, int w) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (y < h && x < w) o[y * w + x] = 2.0f * a[y * w + x];
}
"""
    made = tuned(kernel_of(text), {"x": (32, 64), "y": (4, 8)})
    after = written(made)
    assert "tune BLOCK_Y in {4, 8, 16} = 16 if BLOCK_X * BLOCK_Y <= 1024" in after
    assert "require cdiv(h, BLOCK_Y) <= 65535" in after
    other = kernel_of(after).program.with_values({"BLOCK_X": 64, "BLOCK_Y": 4}).text
    assert end_of(text, other, PLANE, {"h": 37, "w": 65}, {"h": 2, "w": 3}) == "same"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (SAXPY.replace("i < n", "i < n && threadIdx.x < 50"), "where in its block it stands along x, line 4"),
        (SAXPY.replace("o[i]", "o[i + blockIdx.x]"), "where in its block it stands along x, line 4"),
        (SAXPY.replace("if (i < n) ", ""), "256 threads along x are not certain"),
        (SAXPY.replace("o[i] = k * x[i]", "o[i] = k;\n    k = x[i]"), "256 threads along x"),
        (STRIDE, "256 threads along x are not certain"),
        (SAXPY.replace("    if", "    __shared__ float s[64];\n    s[threadIdx.x] = k;\n    if"), "where in its block it stands, line 3"),
        (SAXPY.replace("    if", "    __syncthreads();\n    if"), "where in its block it stands, line 3"),
        (SAXPY.replace("    if", '    printf("");\n    if'), "`printf` tells"),
        (SAXPY.replace("__global__", "__global__ __launch_bounds__(64)"), "its launch bounds"),
        (SAXPY.replace("block(64)", "block(B)").replace("#pragma", "#pragma optiml tune B in {64} = 64\n#pragma", 1), "is not a number"),
    ],
)  # fmt: skip
def test_refused(text: str, reason: str) -> None:
    assert reason in refused(cut(kernel_of(text), {"x": 256}))


def test_lanes_that_work_together_stay_together() -> None:
    text = SAXPY.replace("    if", "    k += __shfl_xor_sync(~0u, k, 1);\n    if")
    after = written(cut(kernel_of(text), {"x": 128}))
    assert end_of(text, after, LINE, {"n": 300}, {"n": 5}, k=0.5) == "same"
    assert "16 threads along x are not certain" in refused(cut(kernel_of(text), {"x": 16}))
    group = SAXPY.replace("    if", "    k += cg::this_thread_block().thread_rank();\n    if")
    found = cut(
        kernel_of("#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n" + group),
        {"x": 128},
    )
    assert "asks for the threads of a block" in refused(found) or "is not read" in refused(found)


def test_arguments_by_place() -> None:
    text = SAXPY.replace("block(64)", "block(64) args(k, x, o, n)")
    assert "cdiv(n, 128)" in written(cut(kernel_of(text), {"x": 128}))
    text = SAXPY.replace("block(64)", "block(64) args(k, x, o, m)")
    assert "128 threads along x are not certain" in refused(cut(kernel_of(text), {"x": 128}))


def test_tuned_names_are_refused_where_an_extent_would_be_wrong() -> None:
    found = tuned(kernel_of(STRIDE), {"x": (32, 128)})
    assert "no other number of threads along x" in refused(found)
    bounds = SAXPY.replace("__global__", "__global__ __launch_bounds__(64)")
    assert "its launch bounds" in refused(tuned(kernel_of(bounds), {"x": (32,)}))
